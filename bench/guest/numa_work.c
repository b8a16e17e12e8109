// SPDX-License-Identifier: GPL-2.0
/*
 * Workloads for NUMA balancing, and what the scanner did to them.
 *
 *   numa_work WORKLOAD SEED
 *
 * A workload is threads, areas of memory, and who uses which area when. All
 * memory is put on node 0; threads are bound to CPUs in turn. While they run, a
 * return probe on change_prot_numa() notes which thread armed how many PTEs
 * where; from that and the threads' own record of when they were at work come
 * the figures that vmstat does not have.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/mempolicy.h>

#define TRACING	"/sys/kernel/tracing/"
#define MIB	(1UL << 20)
#define MAX_THREADS	128
#define MAX_AREAS	2048
#define MAX_SPELLS	4096

struct workload {
	const char *name;
	int processes;
	int threads;		/* of each process */
	size_t area;		/* bytes of an area */
	int areas;		/* of each process; apart by guard pages */
	enum { ALL, OWN, SLICE } use; /* all of it; its own areas; its slice */
	int asleep;		/* seconds of sleep after each second of work */
	int sleepers;		/* how many threads sleep */
	int lifetime;		/* milliseconds that a thread lives; 0: to the end */
	int seconds;
};

/*
 * The sizes of autonuma-benchmark's numa01 and numa02 (3 GiB a process) are
 * scaled to the guest, and scan_size_mb with them.
 */
static const struct workload workloads[] = {
	{ "numa01",	2,  4, 48 * MIB,   1, ALL,   0,   0, 0,   60 },
	{ "numa01-threadlocal", 2, 4, 48 * MIB, 1, SLICE, 0, 0, 0, 60 },
	{ "numa02",	1,  8, 64 * MIB,   1, SLICE, 0,   0, 0,   60 },
	{ "private8",	1,  8,  4 * MIB,   8, OWN,   0,   0, 0,   60 },
	{ "private32",	1, 32,  1 * MIB,  32, OWN,   0,   0, 0,   60 },
	{ "private128",	1, 128, MIB / 4, 128, OWN,   0,   0, 0,   90 },
	{ "shared",	1,  8, 32 * MIB,   1, ALL,   0,   0, 0,   60 },
	{ "sleepers5",	1,  8,  4 * MIB,   8, OWN,   5,   4, 0,   90 },
	{ "sleepers30",	1,  8,  4 * MIB,   8, OWN,  30,   4, 0,  130 },
	{ "sleepers120", 1, 8,  4 * MIB,   8, OWN, 120,   4, 0,  370 },
	{ "small",	1,  8, 16384,   2000, OWN,   0,   0, 0,   60 },
	{ "storm",	1,  8,  4 * MIB,   8, OWN,   0,   0, 300, 60 },
};

/* Shared with the processes of a workload. */
static struct shared {
	struct area {
		char *start;
		int owner;		/* number of the thread, or -1: many */
		int process;
	} area[MAX_AREAS];
	struct thread {
		/* Who it is, now and before: a storm's thread comes again. */
		atomic_int tids;
		pid_t tid[MAX_SPELLS / 8];
		int spells;		/* of work, in seconds from the start */
		struct { double from, to; } spell[MAX_SPELLS / 8];
	} thread[2 * MAX_THREADS];
	atomic_int processes_ready;
	atomic_bool stop;
} *shared;

static const struct workload *work;
static unsigned int seed;
static int process;
static double began;
static int nr_cpus;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		err(1, "cannot write \"%s\" to %s", text, path);
	close(fd);
}

static long vmstat(const char *name)
{
	FILE *file = fopen("/proc/vmstat", "r");
	char key[64];
	long value;

	if (!file)
		err(1, "/proc/vmstat");
	while (fscanf(file, "%63s %ld", key, &value) == 2) {
		if (!strcmp(key, name)) {
			fclose(file);
			return value;
		}
	}
	errx(1, "no %s in /proc/vmstat", name);
}

/* One pass of a thread over what it uses; pages in an order of its own. */
static void use(int number, unsigned int *random)
{
	size_t page = sysconf(_SC_PAGESIZE);
	int first = process * work->areas;

	for (int i = 0; i < work->areas; i++) {
		struct area *area = &shared->area[first + i];
		size_t size = work->area, from = 0;

		if (work->use == OWN && area->owner != number)
			continue;
		if (work->use == SLICE) {
			size = work->area / work->threads;
			from = size * (number % work->threads);
		}
		size_t pages = size / page, at = rand_r(random) % pages;

		for (size_t n = 0; n < pages; n++, at = (at + 1) % pages)
			area->start[from + at * page]++;
	}
}

static void *thread(void *arg)
{
	int number = (intptr_t)arg;
	struct thread *me = &shared->thread[number];
	unsigned int random = seed * 1000 + number;
	int in_process = number % work->threads;
	bool sleeper = in_process >= work->threads - work->sleepers;
	double born = seconds();
	int slot = me->tids;
	cpu_set_t cpus;

	if (slot < MAX_SPELLS / 8) {
		me->tid[slot] = syscall(SYS_gettid);
		me->tids = slot + 1;
	}
	CPU_ZERO(&cpus);
	CPU_SET(number % nr_cpus, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);

	/* Sleepers do not wake up together. */
	if (sleeper)
		usleep(rand_r(&random) % (work->asleep * 1000000 + 1));

	while (!shared->stop) {
		double from = seconds(), to;

		do {
			use(number, &random);
			to = seconds();
		} while (!shared->stop && !(sleeper && to - from > 1) &&
			 !(work->lifetime && to - born > work->lifetime / 1e3));

		if (me->spells < MAX_SPELLS / 8) {
			me->spell[me->spells].from = from;
			me->spell[me->spells].to = to;
			me->spells++;
		}
		if (work->lifetime)
			break;
		for (int i = 0; sleeper && i < work->asleep * 10 && !shared->stop; i++)
			usleep(100000);
	}

	return NULL;
}

static void run_process(void)
{
	pthread_t threads[MAX_THREADS];
	size_t page = sysconf(_SC_PAGESIZE);
	size_t stride = work->area + page;
	unsigned long node0 = 1;
	char *memory;

	memory = mmap(NULL, stride * work->areas, PROT_NONE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		err(1, "mmap");
	/* Where they begin is fixed by preferring node 0 while they are touched. */
	if (syscall(SYS_set_mempolicy, MPOL_PREFERRED, &node0, 8))
		err(1, "set_mempolicy");
	for (int i = 0; i < work->areas; i++) {
		struct area *area = &shared->area[process * work->areas + i];

		area->start = memory + i * stride;
		area->process = process;
		area->owner = work->use == OWN ?
			process * work->threads + i % work->threads : -1;
		if (mprotect(area->start, work->area, PROT_READ | PROT_WRITE))
			err(1, "mprotect");
		if (madvise(area->start, work->area, MADV_NOHUGEPAGE))
			err(1, "madvise");
		memset(area->start, 1, work->area);
	}
	if (syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0))
		err(1, "set_mempolicy");

	shared->processes_ready++;
	while (shared->processes_ready < work->processes)
		usleep(1000);

	do {
		for (int i = 0; i < work->threads; i++)
			if (pthread_create(&threads[i], NULL, thread,
					   (void *)(intptr_t)(process * work->threads + i)))
				errx(1, "cannot make a thread");
		for (int i = 0; i < work->threads; i++)
			pthread_join(threads[i], NULL);
	} while (!shared->stop);
}

/* How many pages of the areas with an owner are on its node, in percent. */
static double local(pid_t pid, int which)
{
	size_t page = sysconf(_SC_PAGESIZE);
	long near = 0, all = 0;

	for (int i = 0; i < work->areas; i++) {
		struct area *area = &shared->area[which * work->areas + i];
		size_t pages = work->area / page;
		void *addr[64];
		int status[64];

		for (size_t n = 0; n < pages; n += 64) {
			int count = pages - n < 64 ? pages - n : 64, thread, node;

			for (int j = 0; j < count; j++)
				addr[j] = area->start + (n + j) * page;
			if (syscall(SYS_move_pages, pid, count, addr, NULL, status, 0))
				err(1, "move_pages");
			for (int j = 0; j < count; j++) {
				thread = area->owner;
				if (work->use == SLICE)
					thread = which * work->threads +
						 (n + j) * page / (work->area / work->threads);
				/* As the machine has them: CPUs in equal runs. */
				node = thread % nr_cpus / (nr_cpus / 2);
				near += status[j] == node;
				all++;
			}
		}
	}

	return 100.0 * near / all;
}

struct scan {
	pid_t tid;
	double time;
	char *start;
	long ptes;
};

static struct scan *scans;
static int nr_scans;

static void read_trace(void)
{
	FILE *file = fopen(TRACING "trace", "r");
	char line[512];

	if (!file)
		err(1, TRACING "trace");
	while (fgets(line, sizeof(line), file)) {
		char *event = strstr(line, ": numab: "), *cpu = strstr(line, " [");
		struct scan scan;
		unsigned long start;
		char *dash, *stamp;

		if (line[0] == '#' || !event || !cpu)
			continue;
		*cpu = 0;
		dash = strrchr(line, '-');
		*event = 0;
		stamp = strrchr(cpu + 1, ' ');
		event = strstr(event + 1, "start=");
		if (!dash || !stamp || !event ||
		    sscanf(event, "start=%lx ptes=%li", &start, &scan.ptes) != 2)
			errx(1, "not understood in the trace: %s", line);
		scan.tid = atoi(dash + 1);
		scan.time = atof(stamp);
		scan.start = (char *)start;
		if (!(nr_scans % 1024))
			scans = realloc(scans, (nr_scans + 1024) * sizeof(*scans));
		if (!scans)
			err(1, "realloc");
		scans[nr_scans++] = scan;
	}
	fclose(file);
}

/* The thread that a scan was made by, or -1. */
static int thread_of(pid_t tid)
{
	for (int i = 0; i < work->processes * work->threads; i++)
		for (int j = 0; j < shared->thread[i].tids; j++)
			if (shared->thread[i].tid[j] == tid)
				return i;
	return -1;
}

static struct area *area_of(int thread, const char *address)
{
	for (int i = 0; i < work->areas; i++) {
		struct area *area = &shared->area[thread / work->threads * work->areas + i];

		if (address >= area->start && address < area->start + work->area)
			return area;
	}
	return NULL;
}

/* For how long of @from to @to an area's users were at work. */
static double at_work(const struct area *area, double from, double to)
{
	double sum = 0, longest = 0;

	for (int i = 0; i < work->threads; i++) {
		int number = area->process * work->threads + i;
		struct thread *thread = &shared->thread[number];

		if (area->owner >= 0 && area->owner != number)
			continue;
		sum = 0;
		for (int j = 0; j < thread->spells; j++) {
			double a = thread->spell[j].from > from ? thread->spell[j].from : from;
			double b = thread->spell[j].to < to ? thread->spell[j].to : to;

			if (b > a)
				sum += b - a;
		}
		if (sum > longest)
			longest = sum;
	}

	return longest;
}

static void figure(const char *name, double value, const char *unit)
{
	printf("figure: %s/%s %.*f %s value=median\n", work->name, name,
	       value == (long)value ? 0 : 1, value, unit);
}

static void report(double until_local, double end)
{
	long foreign = 0, own = 0;
	double gap = 0;

	read_trace();
	for (int i = 0; i < nr_scans; i++) {
		int thread = thread_of(scans[i].tid);
		struct area *area = thread < 0 ? NULL : area_of(thread, scans[i].start);

		if (!area)
			continue;
		if (area->owner >= 0 && area->owner != thread)
			foreign += scans[i].ptes;
		else
			own += scans[i].ptes;
	}
	figure("own-pte-updates", own, "PTEs");
	if (work->use == OWN)
		figure("foreign-pte-updates", foreign, "PTEs");

	/* Of the many small areas a part says the same. */
	for (int i = 0; i < work->processes * work->areas; i += work->areas > 200 ? 20 : 1) {
		struct area *area = &shared->area[i];
		double last = began;

		for (int j = 0; j <= nr_scans; j++) {
			double time = j < nr_scans ? scans[j].time : end, waited;

			if (j < nr_scans &&
			    (!scans[j].ptes || scans[j].start < area->start ||
			     scans[j].start >= area->start + work->area ||
			     thread_of(scans[j].tid) / work->threads != area->process))
				continue;
			waited = at_work(area, last, time);
			if (waited > gap)
				gap = waited;
			last = time;
		}
	}
	figure("longest-unscanned", gap * 1000, "ms");
	if (work->use != ALL)
		figure("until-local", until_local * 1000, "ms");
}

int main(int argc, char **argv)
{
	static const char * const counters[][2] = {
		{ "numa_pte_updates", "pte-updates" },
		{ "numa_hint_faults", "hint-faults" },
		{ "numa_hint_faults_local", "hint-faults-local" },
		{ "numa_pages_migrated", "migrated" },
	};
	pid_t pids[2];
	long before[4], counted[4];
	double end, until_local = 0;

	if (argc != 3)
		errx(1, "usage: numa_work WORKLOAD SEED");
	for (size_t i = 0; i < sizeof(workloads) / sizeof(*workloads); i++)
		if (!strcmp(workloads[i].name, argv[1]))
			work = &workloads[i];
	if (!work)
		errx(1, "no workload is named %s", argv[1]);
	seed = atoi(argv[2]);
	nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		err(1, "mmap");

	write_file(TRACING "trace_clock", "mono");
	write_file(TRACING "buffer_size_kb", "8192");
	write_file(TRACING "kprobe_events",
		   "r:numab change_prot_numa start=$arg2:x64 ptes=$retval:s64");
	write_file(TRACING "events/kprobes/numab/enable", "1");

	for (int i = 0; i < 4; i++)
		before[i] = vmstat(counters[i][0]);
	for (process = 0; process < work->processes; process++) {
		pids[process] = fork();
		if (pids[process] < 0)
			err(1, "fork");
		if (!pids[process]) {
			run_process();
			exit(0);
		}
	}
	while (shared->processes_ready < work->processes) {
		/* A process that could not start would be waited for in vain. */
		if (waitpid(-1, NULL, WNOHANG) > 0)
			errx(1, "a process of the workload died");
		usleep(10000);
	}
	began = seconds();
	do {
		sleep(1);
		end = seconds();
		if (work->use == ALL || until_local)
			continue;
		double worst = 100;

		for (int i = 0; i < work->processes; i++) {
			double percent = local(pids[i], i);

			if (percent < worst)
				worst = percent;
		}
		if (worst >= 95)
			until_local = end - began;
	} while (end - began < work->seconds);
	for (int i = 0; i < 4; i++)
		counted[i] = vmstat(counters[i][0]) - before[i];
	shared->stop = true;
	write_file(TRACING "events/kprobes/numab/enable", "0");
	for (int i = 0; i < work->processes; i++) {
		int status;

		if (waitpid(pids[i], &status, 0) < 0 || status)
			errx(1, "a process of the workload failed");
	}

	for (int i = 0; i < 4; i++)
		figure(counters[i][1], counted[i], i ? "pages" : "PTEs");
	figure("useful", counted[0] ? 100.0 * counted[1] / counted[0] : 0, "%");
	/* What never got there has the whole time. */
	report(until_local ? until_local : work->seconds, end);
	return 0;
}
