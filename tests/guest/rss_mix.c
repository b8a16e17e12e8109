// SPDX-License-Identifier: GPL-2.0
/*
 * rss_mix: processes do everything that moves an mm's counters, in random
 * order, while another one disturbs them from outside. After each step, statm,
 * stat, status and smaps_rollup must agree.
 *
 *	rss_mix STEPS [SEED]
 *
 * Started by the test mm-counters, which sees to swap, reclaim, khugepaged and
 * KSM. What is left in the counters when an mm goes the kernel says itself
 * ("Bad rss-counter state"), and the guest's verdict with it.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define PAGE		4096UL
#define HUGE		(2UL << 20)
/* The same in all subjects, so that the disturber knows where. */
#define ARENA		((char *)0x200000000000UL)
#define PRIVATE		(4 * HUGE)
#define SHARED		(2 * HUGE)
#define STACK		(64UL << 10)
#define MAX_SUBJECTS	64
#define SWAP		"/tmp/swap/file"
/* A memory cgroup with room for less than half of an arena. */
#define SMALL		"/sys/fs/cgroup/small/cgroup.procs"

static struct shared {
	long steps;			/* left */
	int pause, paused;		/* the disturber stands still */
	pid_t pids[MAX_SUBJECTS];
	long checks, tries, disturbances, oom_kills, failures;
} *shared;

static int nr_subjects;
static unsigned int seed;
/* Has this mm ever had two tasks, other than by vfork? */
static bool was_shared;

static unsigned int rnd(unsigned int n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % n;
}

/* Files are read into memory that is there: looking must not move anything. */
static char buffer[16384];

static long slurp(const char *name)
{
	int fd = open(name, O_RDONLY);
	ssize_t got;

	if (fd < 0)
		return -1;
	got = read(fd, buffer, sizeof(buffer) - 1);
	close(fd);
	buffer[got > 0 ? got : 0] = 0;
	return got;
}

static long key(const char *name)
{
	char *at = strstr(buffer, name);

	return at ? strtol(at + strlen(name), NULL, 10) * 1024 / (long)PAGE : -1;
}

struct counts {
	long statm, statm_shared, stat, rss, anon, file, shmem, swap, hwm, smaps;
};

static void look(struct counts *c)
{
	char *at;
	int i;

	slurp("/proc/self/statm");
	strtol(buffer, &at, 10);
	c->statm = strtol(at, &at, 10);
	c->statm_shared = strtol(at, &at, 10);
	slurp("/proc/self/stat");
	at = strrchr(buffer, ')') + 2;
	for (i = 3; i < 24; i++)
		at = strchr(at, ' ') + 1;
	c->stat = strtol(at, NULL, 10);
	slurp("/proc/self/status");
	c->rss = key("VmRSS:");
	c->anon = key("RssAnon:");
	c->file = key("RssFile:");
	c->shmem = key("RssShmem:");
	c->swap = key("VmSwap:");
	c->hwm = key("VmHWM:");
	slurp("/proc/self/smaps_rollup");
	c->smaps = key("Rss:");
}

static bool agree(const struct counts *c)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	long slack = was_shared ? cpus * (cpus > 16 ? 2 * cpus : 32) : 0;

	return c->statm == c->rss && c->smaps == c->rss &&
	       c->statm_shared == c->file + c->shmem &&
	       c->anon + c->file + c->shmem == c->rss && c->swap >= 0 &&
	       c->hwm >= c->rss && labs(c->stat - c->rss) <= slack;
}

static void check(const char *op)
{
	struct counts c;
	int tries;

	__atomic_add_fetch(&shared->checks, 1, __ATOMIC_RELAXED);
	for (tries = 0; tries < 2000; tries++) {
		look(&c);
		if (agree(&c))
			break;
		if (tries == 5)
			__atomic_add_fetch(&shared->pause, 1, __ATOMIC_SEQ_CST);
		if (tries > 5)
			usleep(1000);
	}
	if (tries > 5)
		__atomic_sub_fetch(&shared->pause, 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&shared->tries, tries, __ATOMIC_RELAXED);
	if (tries < 2000)
		return;
	__atomic_add_fetch(&shared->failures, 1, __ATOMIC_RELAXED);
	printf("# pid %d after %s: statm %ld (%ld shared) stat %ld smaps %ld, status %ld = %ld + %ld + %ld, hwm %ld swap %ld%s\n",
	       getpid(), op, c.statm, c.statm_shared, c.stat, c.smaps, c.rss,
	       c.anon, c.file, c.shmem, c.hwm, c.swap, was_shared ? ", was shared" : "");
	fflush(stdout);
}

static void touch_some(void)
{
	unsigned long at = rnd((PRIVATE + SHARED) / PAGE), n = rnd(200) + 1;

	for (; n-- && at < (PRIVATE + SHARED) / PAGE; at++)
		*(volatile char *)(ARENA + at * PAGE) += rnd(3);
}

static void map_arena(void)
{
	int file = rnd(3) ? -1 : memfd_create("file", 0);

	if (mmap(ARENA, PRIVATE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		err(1, "mmap");
	if (file >= 0 && ftruncate(file, SHARED))
		err(1, "ftruncate");
	/* Now and then pages of a file that are copied, else shared ones. */
	if (mmap(ARENA + PRIVATE, SHARED, PROT_READ | PROT_WRITE,
		 file < 0 ? MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED : MAP_PRIVATE | MAP_FIXED,
		 file, 0) == MAP_FAILED)
		err(1, "mmap");
	if (file >= 0)
		close(file);
	madvise(ARENA, PRIVATE, rnd(2) ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	madvise(ARENA, PRIVATE, rnd(2) ? MADV_MERGEABLE : MADV_UNMERGEABLE);
}

static void op_touch(void) { touch_some(); }
static void op_map(void) { map_arena(); touch_some(); }

static void op_unmap(void)
{
	unsigned long at = rnd(PRIVATE / PAGE) * PAGE, n = (rnd(600) + 1) * PAGE;

	if (at + n > PRIVATE)
		n = PRIVATE - at;
	munmap(ARENA + at, n);
	if (mmap(ARENA + at, n, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		err(1, "mmap");
}

static void op_mremap(void)
{
	unsigned long from = rnd(PRIVATE / PAGE - 100) * PAGE, n = (rnd(99) + 1) * PAGE;
	unsigned long to = rnd(PRIVATE / PAGE - 100) * PAGE;

	if (from < to + n && to < from + n)
		return;
	mremap(ARENA + from, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, ARENA + to);
	if (mmap(ARENA + from, n, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		err(1, "mmap");
}

static void op_madvise(void)
{
	static const int advice[] = {
		MADV_DONTNEED, MADV_FREE, MADV_PAGEOUT, MADV_COLD, MADV_COLLAPSE,
		MADV_REMOVE, MADV_POPULATE_WRITE, MADV_POPULATE_READ, MADV_WILLNEED,
	};
	unsigned long at = rnd((PRIVATE + SHARED) / PAGE) * PAGE, n = (rnd(600) + 1) * PAGE;

	if (at + n > PRIVATE + SHARED)
		n = PRIVATE + SHARED - at;
	madvise(ARENA + at, n, advice[rnd(sizeof(advice) / sizeof(*advice))]);
}

static void reap(pid_t child)
{
	if (child < 0)
		err(1, "fork");
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

static void op_fork(void)
{
	bool kill_it = !rnd(4);
	pid_t child = fork();

	if (!child) {
		was_shared = false;
		touch_some();
		if (rnd(2))
			op_unmap();
		if (rnd(2))
			check("fork, in the child");
		if (kill_it)
			pause();
		_exit(0);
	}
	touch_some();
	if (kill_it) {
		int fd = syscall(SYS_pidfd_open, child, 0);

		kill(child, SIGKILL);
		/* Its memory goes by our hand, if it has not gone yet. */
		syscall(SYS_process_mrelease, fd, 0);
		close(fd);
	}
	reap(child);
}

static int child_touches(void *arg)
{
	touch_some();
	if (arg)
		execl("/proc/self/exe", "rss_mix", "exit", NULL);
	_exit(0);
}

static void cloned(int flags, void *arg)
{
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	if (stack == MAP_FAILED)
		err(1, "mmap");
	child = clone(child_touches, stack + STACK, flags | SIGCHLD, arg);
	if (!(flags & CLONE_VFORK))
		touch_some();
	reap(child);
	munmap(stack, STACK);
}

static void op_vfork(void) { cloned(CLONE_VM | CLONE_VFORK, NULL); }
static void op_exec(void) { cloned(CLONE_VM | CLONE_VFORK, ARENA); }
static void op_clone(void) { was_shared = true; cloned(CLONE_VM, NULL); }

static void *thread(void *arg)
{
	touch_some();
	op_madvise();
	return arg;
}

static void op_threads(void)
{
	pthread_t threads[3];
	int i, n = rnd(3) + 1;

	was_shared = true;
	for (i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, thread, NULL))
			err(1, "thread");
	thread(NULL);
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

/* A worker of io_uring reads into pages that are not there. */
static void op_uring(void)
{
	struct io_uring_params p = {};
	struct io_uring_sqe *sqe;
	int ring = syscall(__NR_io_uring_setup, 4, &p), zero;
	unsigned int *tail, *array;
	char *sq;

	if (ring < 0)
		return;
	was_shared = true;
	zero = open("/dev/zero", O_RDONLY);
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * sizeof(int), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
	sqe = mmap(NULL, p.sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
	if (sq == MAP_FAILED || (void *)sqe == MAP_FAILED)
		err(1, "io_uring");
	tail = (unsigned int *)(sq + p.sq_off.tail);
	array = (unsigned int *)(sq + p.sq_off.array);
	*sqe = (struct io_uring_sqe){
		.opcode = IORING_OP_READ, .flags = IOSQE_ASYNC, .fd = zero,
		.addr = (unsigned long)(ARENA + rnd(PRIVATE / PAGE - 100) * PAGE),
		.len = 100 * PAGE,
	};
	array[0] = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	syscall(__NR_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
	munmap(sq, p.sq_off.array + p.sq_entries * sizeof(int));
	munmap(sqe, p.sq_entries * sizeof(*sqe));
	close(zero);
	close(ring);
}

static void *touch_all(void *arg)
{
	unsigned long at;

	for (at = 0; at < PRIVATE; at += PAGE)
		*(volatile char *)(ARENA + at) += 1;
	return arg;
}

/* The OOM killer takes a child, and its reaper the memory, while it exits. */
static void op_oom(void)
{
	bool threads = rnd(2);
	pid_t child = fork();
	int status;

	if (!child) {
		char me[] = "0";
		int fd = open(SMALL, O_WRONLY);
		pthread_t thread;

		if (fd < 0 || write(fd, me, 1) != 1)
			err(1, SMALL);
		close(fd);
		/* So that the child owns what is charged. */
		map_arena();
		madvise(ARENA, PRIVATE, MADV_UNMERGEABLE);
		if (threads && pthread_create(&thread, NULL, touch_all, NULL))
			err(1, "thread");
		for (;;)
			touch_all(NULL);
	}
	touch_some();
	if (child < 0 || waitpid(child, &status, 0) != child)
		err(1, "fork");
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		__atomic_add_fetch(&shared->oom_kills, 1, __ATOMIC_RELAXED);
}

/* A child fills pages of ours. */
static void op_userfaultfd(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register area = {
		.range = { (unsigned long)ARENA + rnd(PRIVATE / PAGE - 64) * PAGE, 64 * PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct uffdio_copy copy = {
		.dst = area.range.start, .src = (unsigned long)ARENA, .len = 64 * PAGE,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	pid_t child;

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
		err(1, "userfaultfd");
	madvise((void *)area.range.start, area.range.len, MADV_DONTNEED);
	if (ioctl(fd, UFFDIO_REGISTER, &area)) {
		close(fd);
		return;
	}
	child = fork();
	if (!child) {
		/* What is there already ends it; begin at the next one. */
		while (ioctl(fd, UFFDIO_COPY, &copy) && copy.dst < area.range.start + 63 * PAGE) {
			long done = copy.copy > 0 ? copy.copy : (long)PAGE;

			copy.dst += done;
			copy.len -= done;
			copy.copy = 0;
		}
		_exit(0);
	}
	reap(child);
	ioctl(fd, UFFDIO_UNREGISTER, &area.range);
	close(fd);
}

static const struct {
	const char *name;
	void (*run)(void);
	int weight;
	bool shares;
} ops[] = {
	{ "touch", op_touch, 6 }, { "map", op_map, 1 }, { "unmap", op_unmap, 4 },
	{ "mremap", op_mremap, 3 }, { "madvise", op_madvise, 6 },
	{ "oom", op_oom, 1 }, { "userfaultfd", op_userfaultfd, 2 },
	{ "fork", op_fork, 3 }, { "vfork", op_vfork, 3 }, { "exec", op_exec, 2 },
	{ "clone", op_clone, 2, true }, { "threads", op_threads, 3, true },
	{ "io_uring", op_uring, 1, true },
};

#define NR_OPS ((int)(sizeof(ops) / sizeof(*ops)))

/* Lives for some steps; a new process follows it. Every other one never shares. */
static void subject(void)
{
	bool may_share = rnd(2);
	int steps = 20 + rnd(60), i, w, total = 0;

	for (i = 0; i < NR_OPS; i++)
		total += ops[i].weight;
	map_arena();
	while (steps-- && __atomic_sub_fetch(&shared->steps, 1, __ATOMIC_RELAXED) >= 0) {
		do {
			w = rnd(total);
			for (i = 0; w >= ops[i].weight; i++)
				w -= ops[i].weight;
		} while (ops[i].shares && !may_share);
		ops[i].run();
		check(ops[i].name);
	}
	_exit(0);
}

/* One thing to one subject, or to all. */
static void disturb(void)
{
	pid_t pid = shared->pids[rnd(nr_subjects)];
	unsigned long at = rnd((PRIVATE + SHARED) / PAGE - 100) * PAGE;
	static const int advice[] = { MADV_PAGEOUT, MADV_COLD, MADV_WILLNEED, MADV_COLLAPSE };
	struct iovec to = { ARENA + at, (rnd(99) + 1) * PAGE }, from = { buffer, PAGE };
	void *pages[32];
	int nodes[32], status[32], i, fd;
	char path[64];

	if (pid <= 0)
		return;
	switch (rnd(9)) {
	case 0:
		to.iov_len = PAGE;
		process_vm_writev(pid, &from, 1, &to, 1, 0);
		break;
	case 1:
		to.iov_len = PAGE;
		process_vm_readv(pid, &from, 1, &to, 1, 0);
		break;
	case 2:
	case 3:
		fd = syscall(SYS_pidfd_open, pid, 0);
		if (fd < 0)
			break;
		syscall(SYS_process_madvise, fd, &to, 1, advice[rnd(4)], 0);
		close(fd);
		break;
	case 4:
		for (i = 0; i < 32; i++) {
			pages[i] = ARENA + at + i * PAGE;
			nodes[i] = at / PAGE & 1;
		}
		syscall(SYS_move_pages, pid, 32, pages, nodes, status, 2 /* MPOL_MF_MOVE */);
		break;
	case 5:
		if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
			break;
		ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
		/* It stops or ends; its parent hears of its end only after us. */
		if (waitpid(pid, &i, __WALL) == pid && WIFSTOPPED(i)) {
			ptrace(PTRACE_POKEDATA, pid, ARENA + at, 1L);
			ptrace(PTRACE_DETACH, pid, NULL, NULL);
		}
		break;
	case 6:
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, rnd(2) ? "cmdline" : "smaps_rollup");
		slurp(path);
		break;
	case 7:
		snprintf(path, sizeof(path), "/proc/%d/clear_refs", pid);
		fd = open(path, O_WRONLY);
		if (fd >= 0) {
			/* Not 5, which sets the high-water mark back. */
			if (write(fd, rnd(2) ? "1" : "3", 1) != 1)
				pid = 0;
			close(fd);
		}
		break;
	case 8:
		if (rnd(20))
			break;
		if (rnd(2)) {
			/* All that is swapped out comes back, by one process for all. */
			if (!swapoff(SWAP) && swapon(SWAP, 0))
				warn("swapon");
		} else {
			fd = open("/proc/sys/vm/compact_memory", O_WRONLY);
			if (fd >= 0) {
				if (write(fd, "1", 1) != 1)
					warn("compact_memory");
				close(fd);
			}
		}
		break;
	}
	shared->disturbances++;
}

static void disturber(void)
{
	for (;;) {
		while (__atomic_load_n(&shared->pause, __ATOMIC_SEQ_CST))
			usleep(1000);
		disturb();
		usleep(rnd(3000));
	}
}

int main(int argc, char **argv)
{
	pid_t disturbers, pid;
	long steps;
	int i;

	if (argc > 1 && !strcmp(argv[1], "exit"))
		_exit(0);
	steps = argc > 1 ? atol(argv[1]) : 10000;
	seed = argc > 2 ? atol(argv[2]) : 1;
	nr_subjects = 2 * sysconf(_SC_NPROCESSORS_ONLN);
	if (nr_subjects > MAX_SUBJECTS)
		nr_subjects = MAX_SUBJECTS;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		err(1, "mmap");
	shared->steps = steps;
	memset(buffer, 0, sizeof(buffer));

	puts("TAP version 13");
	fflush(stdout);
	disturbers = fork();
	if (!disturbers) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		seed += 1000000;
		disturber();
	}
	for (i = 0; ; i = (i + 1) % nr_subjects) {
		if (shared->pids[i])
			continue;
		if (shared->steps <= 0)
			break;
		seed += 7919;
		fflush(stdout);
		pid = fork();
		if (pid < 0)
			err(1, "fork");
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			subject();
		}
		shared->pids[i] = pid;
		/* All places taken: one must become free. */
		for (i = 0; i < nr_subjects && shared->pids[i]; i++)
			;
		if (i == nr_subjects) {
			int status;

			pid = wait(&status);
			if (pid == disturbers)
				errx(1, "the disturber ended: %#x", status);
			for (i = 0; i < nr_subjects && shared->pids[i] != pid; i++)
				;
			if (i == nr_subjects)
				errx(1, "who is %d?", pid);
			shared->pids[i] = 0;
			if (status) {
				printf("# subject %d ended: %#x\n", pid, status);
				shared->failures++;
			}
		}
		i = i ? i - 1 : nr_subjects - 1;
	}
	kill(disturbers, SIGKILL);
	waitpid(disturbers, NULL, 0);
	for (i = 0; i < nr_subjects; i++) {
		int status;

		if (shared->pids[i] && waitpid(shared->pids[i], &status, 0) > 0 && status) {
			printf("# subject ended: %#x\n", status);
			shared->failures++;
		}
	}
	printf("# %ld steps, %ld checks, looked again %ld times, disturbed %ld times, %ld killed by OOM\n",
	       steps, shared->checks, shared->tries, shared->disturbances,
	       shared->oom_kills);
	printf("%s 1 statm, stat, status and smaps_rollup agree after each step\n1..1\n",
	       shared->failures ? "not ok" : "ok");
	return shared->failures ? 1 : 0;
}
