// SPDX-License-Identifier: GPL-2.0
/*
 * oom_victim: the OOM killer takes the process with most pages, if only by a few.
 *
 *	oom_victim ROUNDS CGROUP
 *
 * CGROUP is a memory cgroup with a limit. In each round some processes fill the
 * same number of pages there, with a thread on each CPU, but for one process that
 * fills MORE. MORE is less than what a counter that is read without a sum over
 * CPUs may be wrong by, so who went by that would take another one now and then.
 * Then somebody who may not be killed goes over the limit.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	4096UL
#define CHILDREN 6
#define PAGES	1600
#define MORE	24

static const char *cgroup;
static int nr_cpus;

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err(1, "%s", path);
	close(fd);
}

static void enter(void)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	put(path, "0");
}

struct part {
	int cpu;
	char *from;
	int pages;
};

static void *fill(void *arg)
{
	struct part *part = arg;
	cpu_set_t set;
	int i;

	CPU_ZERO(&set);
	CPU_SET(part->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "cpu %d", part->cpu);
	for (i = 0; i < part->pages; i++)
		part->from[i * PAGE] = 1;
	return NULL;
}

/* A process that fills so many pages, in shares that differ from CPU to CPU. */
static pid_t child(int pages, unsigned int seed)
{
	int ready[2], i, left = pages;
	pid_t pid;
	char c;

	if (pipe(ready))
		err(1, "pipe");
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		pthread_t threads[nr_cpus];
		struct part parts[nr_cpus];
		char *at;

		enter();
		/* The same page tables for all of them. */
		at = mmap((void *)0x200000000000UL, 4 * PAGES * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		if (at == MAP_FAILED || madvise(at, 4 * PAGES * PAGE, MADV_NOHUGEPAGE))
			err(1, "mmap");
		srand(seed);
		for (i = 0; i < nr_cpus; i++) {
			int n = i < nr_cpus - 1 ? rand() % (left / 2 + 1) : left;

			parts[i] = (struct part){ i, at, n };
			at += n * PAGE;
			left -= n;
			if (pthread_create(&threads[i], NULL, fill, &parts[i]))
				err(1, "thread");
			pthread_join(threads[i], NULL);
		}
		if (write(ready[1], "", 1) != 1)
			err(1, "pipe");
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		errx(1, "a process ended before its time");
	close(ready[0]);
	return pid;
}

static long resident(pid_t pid)
{
	char path[64];
	long size, pages;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%ld %ld", &size, &pages) != 2)
		err(1, "%s", path);
	fclose(f);
	return pages;
}

/* How many the OOM killer has taken in the cgroup. */
static long kills(void)
{
	char path[256], line[64];
	long n = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/memory.events", cgroup);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "oom_kill %ld", &n) == 1)
			break;
	if (n < 0)
		errx(1, "no oom_kill in %s", path);
	fclose(f);
	return n;
}

/*
 * The kernel's own word for it: more than one may be taken before the first one
 * is gone, so who ends first says nothing.
 */
static pid_t first_victim(int log)
{
	char record[1024], *at;
	ssize_t got;

	for (;;) {
		got = read(log, record, sizeof(record) - 1);
		/* EPIPE: records that were not read yet are gone. */
		if (got < 0)
			err(1, "/dev/kmsg");
		record[got] = 0;
		at = strstr(record, "Killed process ");
		if (at)
			return atoi(at + strlen("Killed process "));
	}
}

/* Goes over the limit, and no further. */
static void hog(void)
{
	long before;

	put("/proc/self/oom_score_adj", "-1000");
	enter();
	before = kills();
	while (kills() == before)
		if (mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) == MAP_FAILED)
			err(1, "mmap");
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	int rounds, round, i, largest, killed, log, wrong = 0;
	long rss[CHILDREN], next;
	pid_t pids[CHILDREN], greedy, pid;

	if (argc != 3)
		errx(2, "usage: oom_victim ROUNDS CGROUP");
	rounds = atoi(argv[1]);
	cgroup = argv[2];
	nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);

	puts("TAP version 13");
	fflush(stdout);
	for (round = 0; round < rounds; round++) {
		largest = round % CHILDREN;
		next = 0;
		for (i = 0; i < CHILDREN; i++)
			pids[i] = child(PAGES + (i == largest ? MORE : 0), round * CHILDREN + i);
		for (i = 0; i < CHILDREN; i++) {
			rss[i] = resident(pids[i]);
			if (i != largest && rss[i] > next)
				next = rss[i];
		}
		if (rss[largest] <= next)
			errx(1, "the largest has %ld pages, another one %ld", rss[largest], next);

		log = open("/dev/kmsg", O_RDONLY);
		if (log < 0 || lseek(log, 0, SEEK_END))
			err(1, "/dev/kmsg");
		greedy = fork();
		if (!greedy)
			hog();
		pid = first_victim(log);
		close(log);
		kill(greedy, SIGKILL);
		for (killed = 0; killed < CHILDREN && pids[killed] != pid; killed++)
			;
		if (killed == CHILDREN)
			errx(1, "process %d was killed, which is not in the cgroup", pid);
		if (killed != largest) {
			wrong++;
			printf("# round %d: killed the one with %ld pages, not with %ld\n",
			       round, rss[killed], rss[largest]);
		}
		for (i = 0; i < CHILDREN; i++)
			kill(pids[i], SIGKILL);
		while (wait(NULL) > 0)
			;
	}
	printf("# %d rounds, %d processes of %d pages, one with %d more\n",
	       rounds, CHILDREN, PAGES, MORE);
	printf("1..1\n%s 1 the OOM killer takes the largest\n", wrong ? "not ok" : "ok");
	return !!wrong;
}
