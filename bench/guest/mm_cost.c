// SPDX-License-Identifier: GPL-2.0
/*
 * mm_cost: what it costs a process to live, to fault and to unmap.
 *
 *	mm_cost fork			fork() a child that exits, wait for it
 *	mm_cost thread			the same, and the child has a thread that ends
 *	mm_cost exec			the same without, and the child calls exec()
 *					first, from vfork()
 *	mm_cost anon|shmem|unmap|dontneed TASKS
 *					one page: a fault on anonymous memory, or
 *					on shared memory that is there; unmapping
 *					it with 63 others, or by itself
 *	mm_cost outside			one page that another process faults in, by
 *					process_vm_writev() of 64
 *	mm_cost pause TASKS		sleep for ever, with some memory
 *	mm_cost pauses PROCESSES	so many that sleep
 *	mm_cost spent COMMAND...	microseconds of CPU that a command spends
 *
 * TASKS is 1; or 2: another thread sleeps meanwhile; or 2nd: that thread is the
 * one that is measured, and the first one sleeps.
 *
 * Prints, in cycles of the time stamp counter (with QEMU's -icount: instructions),
 *
 *	MIN MEDIAN MAX SAME ROUNDS
 */
#define _GNU_SOURCE
#include <err.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#define ROUNDS 101
#define PAGES 64
#define PAGE 4096

static char *self;

static void reap(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child || status)
		err(1, "child");
}

static void fork_exit(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	reap(child);
}

static void *nothing(void *arg)
{
	return arg;
}

static void fork_thread_exit(void)
{
	pid_t child = fork();
	pthread_t thread;

	if (!child)
		_exit(pthread_create(&thread, NULL, nothing, NULL) ||
		      pthread_join(thread, NULL));
	reap(child);
}

static void vfork_exec_exit(void)
{
	pid_t child = vfork();

	if (!child) {
		execl(self, self, "exit", NULL);
		_exit(1);
	}
	reap(child);
}

static char *area;

static void touch(void)
{
	int i;

	for (i = 0; i < PAGES; i++)
		*(volatile char *)(area + i * PAGE) = 1;
}

static void unmap(void)
{
	if (munmap(area, PAGES * PAGE))
		err(1, "munmap");
}

static void map_private(void)
{
	/* Where page tables are and stay: the area has neighbours. */
	if (mmap(area, PAGES * PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		err(1, "mmap");
	madvise(area, PAGES * PAGE, MADV_NOHUGEPAGE);
}

static void map_shared(void)
{
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("pages", 0);
		if (fd < 0 || ftruncate(fd, PAGES * PAGE))
			err(1, "memfd");
	}
	if (mmap(area, PAGES * PAGE, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		err(1, "mmap");
}

static void map_and_touch(void)
{
	map_private();
	touch();
}

static void drop_each(void)
{
	int i;

	for (i = 0; i < PAGES; i++)
		madvise(area + i * PAGE, PAGE, MADV_DONTNEED);
}

/* A process with the same area, in which nothing has been touched */
static pid_t other;

static void start_other(void)
{
	map_private();
	other = fork();
	if (other < 0)
		err(1, "fork");
	while (!other)
		pause();
	/* Let it get to sleep. */
	usleep(1000);
}

static void write_other(void)
{
	struct iovec here[PAGES], there[PAGES];
	int i;

	for (i = 0; i < PAGES; i++) {
		here[i] = (struct iovec){ &here, 1 };
		there[i] = (struct iovec){ area + i * PAGE, 1 };
	}
	if (process_vm_writev(other, here, PAGES, there, PAGES, 0) != PAGES)
		err(1, "process_vm_writev");
}

static void stop_other(void)
{
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	unmap();
}

static const struct op {
	const char *name;
	void (*before)(void), (*run)(void), (*after)(void);
	int divide;
} ops[] = {
	{ "fork",	NULL,		fork_exit,	 NULL,	1 },
	{ "thread",	NULL,		fork_thread_exit, NULL,	1 },
	{ "exec",	NULL,		vfork_exec_exit, NULL,	1 },
	{ "anon",	map_private,	touch,		 unmap,	PAGES },
	{ "shmem",	map_shared,	touch,		 unmap,	PAGES },
	{ "unmap",	map_and_touch,	unmap,		 NULL,	PAGES },
	{ "dontneed",	map_and_touch,	drop_each,	 unmap,	PAGES },
	{ "outside",	start_other,	write_other,	 stop_other, PAGES },
};

static int compare(const void *a, const void *b)
{
	unsigned long long x = *(const unsigned long long *)a;
	unsigned long long y = *(const unsigned long long *)b;

	return x < y ? -1 : x > y;
}

static void *measure(void *arg)
{
	const struct op *op = arg;
	unsigned long long times[ROUNDS];
	double d = op->divide;
	int round, same;

	for (round = -3; round < ROUNDS; round++) {
		unsigned long long time;

		if (op->before)
			op->before();
		time = __rdtsc();
		op->run();
		time = __rdtsc() - time;
		if (op->after)
			op->after();
		if (round >= 0)
			times[round] = time;
	}
	qsort(times, ROUNDS, sizeof(*times), compare);
	for (same = 0; same < ROUNDS && times[same] == times[0]; same++)
		;
	printf("%.2f %.2f %.2f %d %d\n", times[0] / d, times[ROUNDS / 2] / d,
	       times[ROUNDS - 1] / d, same, ROUNDS);
	exit(0);
}

static void *sleeper(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void spawn(void *(*fn)(void *), const void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, (void *)arg))
		err(1, "thread");
	/* Let it get to sleep, or to its end. */
	usleep(10000);
}

static int spent(char **argv)
{
	struct rusage usage;
	pid_t child = fork();
	int status;

	if (!child) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(1);
		execvp(*argv, argv);
		_exit(1);
	}
	if (child < 0 || wait4(child, &status, 0, &usage) != child || status)
		errx(1, "%s: status %#x", *argv, status);
	printf("%ld\n", usage.ru_utime.tv_sec * 1000000L + usage.ru_utime.tv_usec +
	       usage.ru_stime.tv_sec * 1000000L + usage.ru_stime.tv_usec);
	return 0;
}

int main(int argc, char **argv)
{
	const char *tasks = argc > 2 ? argv[2] : "1";
	size_t i;

	if (argc < 2)
		errx(1, "usage: mm_cost OP [TASKS]");
	if (!strcmp(argv[1], "exit"))
		_exit(0);
	if (!strcmp(argv[1], "spent"))
		return spent(argv + 2);
	if (!strcmp(argv[1], "pauses")) {
		/* Whoever reads what we print is not to wait for them. */
		if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
			err(1, "/dev/null");
		for (i = atoi(tasks); i; i--) {
			pid_t child = fork();

			if (child < 0)
				err(1, "fork");
			if (!child)
				sleeper(NULL);
		}
		return 0;
	}

	self = "/proc/self/exe";
	area = mmap(NULL, 3 * PAGES * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		err(1, "mmap");
	madvise(area, 3 * PAGES * PAGE, MADV_NOHUGEPAGE);
	memset(area, 1, 3 * PAGES * PAGE);
	area += PAGES * PAGE;

	if (!strcmp(tasks, "2"))
		spawn(sleeper, NULL);
	if (!strcmp(argv[1], "pause"))
		sleeper(NULL);
	for (i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		if (strcmp(argv[1], ops[i].name))
			continue;
		if (!strcmp(tasks, "2nd")) {
			spawn(measure, &ops[i]);
			sleeper(NULL);
		}
		measure((void *)&ops[i]);
	}
	errx(1, "no such op: %s", argv[1]);
}
