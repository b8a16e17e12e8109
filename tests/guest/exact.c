// SPDX-License-Identifier: GPL-2.0
/*
 * exact: have the module numa_exact allocate known numbers of pages on every
 * CPU while others read all interfaces, and hold every counter to the number
 * that it must have moved by. Started by the test numa-exact.
 *
 * What the kernel allocates for itself meanwhile is known from the module's
 * oracle, by node. With it
 *	hit + miss == local + other == what was given on the node
 *	miss, foreign, hit == the known number
 * hold to the last allocation. The kernel's own are hits (no memory is short),
 * but local or other nobody knows: these have that much room, a few hundred of a
 * million, and their sum has none. Of those in the context of a task that
 * interleaves, some follow its policy: interleave_hit has that much, a few.
 */
#include "counters.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "../modules/numa_exact/numa_exact.h"

#define MAX_CPUS	64
#define MAX_READERS	8
#define BULK		67
/*
 * One page more than there are nodes: interleaved, most nodes are asked for a
 * single page, which the bulk allocator gets from the page allocator.
 */
#define FEW		0	/* says so in the table */

enum kind { LOCALLY, REMOTELY, BULKS, INTERLEAVES, WEIGHTED,
	    BULK_INTERLEAVES, BULK_WEIGHTED, MISSES };

static const struct test {
	const char *name;
	enum kind kind;
	unsigned int order;
	unsigned int batch;
} tests[] = {
	{ "order 0, local",		LOCALLY,		0, 16 },
	{ "order 0, remote",		REMOTELY,		0, 16 },
	{ "order 3, local",		LOCALLY,		3, 4 },
	{ "order 3, remote",		REMOTELY,		3, 4 },
	{ "bulk, local and remote",	BULKS,			0, BULK },
	{ "interleaved",		INTERLEAVES,		0, 16 },
	{ "weighted interleaved",	WEIGHTED,		0, 16 },
	{ "bulk interleaved",		BULK_INTERLEAVES,	0, BULK },
	{ "bulk interleaved, few",	BULK_INTERLEAVES,	0, FEW },
	{ "bulk weighted interleaved",	BULK_WEIGHTED,		0, BULK },
	{ "order 0, missed",		MISSES,			0, 16 },
	{ "order 3, missed",		MISSES,			3, 4 },
};

struct moved {
	uint64_t v[MAX_NODES][COUNTERS];
	uint64_t extra[MAX_NODES];	/* by the kernel in our context */
};

static struct shared {
	int test;			/* index, or -1 to end */
	int pause;			/* readers stand still */
	int standing;			/* how many do */
	struct moved moved[MAX_CPUS];
	unsigned long reads[MAX_READERS];
} *shared;

/* The machine. A node that gives no memory is no target. */
static int mem_nodes[MAX_NODES], nr_mem_nodes;
static int nr_nodes, node_of_cpu[MAX_CPUS];
static uint64_t cpus;
static unsigned long count;
static int device;

static void find_machine(void)
{
	uint64_t memory = read_list("/sys/devices/system/node/has_memory");
	char path[64];

	cpus = read_list("/sys/devices/system/cpu/online");
	for (int nid = 0; nid < MAX_NODES; nid++) {
		uint64_t mask;

		if (memory & 1ull << nid)
			mem_nodes[nr_mem_nodes++] = nid;
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", nid);
		if (access(path, F_OK))
			continue;
		nr_nodes = nid + 1;
		mask = read_list(path);
		for (int cpu = 0; cpu < MAX_CPUS; cpu++)
			if (mask & 1ull << cpu)
				node_of_cpu[cpu] = nid;
	}
}

static bool has_memory(int nid)
{
	for (int i = 0; i < nr_mem_nodes; i++)
		if (mem_nodes[i] == nid)
			return true;
	return false;
}

/* The n-th node with memory that is not the given one. */
static int remote_node(int nid, int n)
{
	int others = nr_mem_nodes - has_memory(nid);

	for (int i = 0, k = n % others; ; i++)
		if (mem_nodes[i] != nid && k-- == 0)
			return mem_nodes[i];
}

static int weight_of(int nid)
{
	return 1 + nid % 3;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die("%s", path);
	close(fd);
}

static const char *const cgroup = "/sys/fs/cgroup/numa-exact";
static const char *const weight_file = "/sys/kernel/mm/mempolicy/weighted_interleave/node";

/*
 * One cpuset for each node's memory, and our weights. Before any load: the
 * first cpuset patches the allocator.
 */
static void set_up(void)
{
	char path[80], text[16];

	write_file("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset");
	for (int i = 0; i < nr_mem_nodes; i++) {
		int nid = mem_nodes[i];

		snprintf(path, sizeof(path), "%s-%d", cgroup, nid);
		if (mkdir(path, 0755))
			die("%s", path);
		snprintf(path, sizeof(path), "%s-%d/cpuset.mems", cgroup, nid);
		snprintf(text, sizeof(text), "%d", nid);
		write_file(path, text);

		snprintf(path, sizeof(path), "%s%d", weight_file, nid);
		snprintf(text, sizeof(text), "%d", weight_of(nid));
		write_file(path, text);
	}
}

static void clean_up(void)
{
	char path[80];

	for (int i = 0; i < nr_mem_nodes; i++) {
		snprintf(path, sizeof(path), "%s-%d", cgroup, mem_nodes[i]);
		rmdir(path);
		/* What the kernel has without a table from the firmware. */
		snprintf(path, sizeof(path), "%s%d", weight_file, mem_nodes[i]);
		write_file(path, "1");
	}
}

/* Only memory of this node for this process; -1: any. */
static void enter_cpuset(int nid)
{
	char path[80] = "/sys/fs/cgroup/cgroup.procs";

	if (nid >= 0)
		snprintf(path, sizeof(path), "%s-%d/cgroup.procs", cgroup, nid);
	write_file(path, "0");
}

/* Why this test cannot be done here, or NULL. */
static const char *cannot(const struct test *t)
{
	bool local = false;

	if (t->kind == LOCALLY) {
		for (int cpu = 0; cpu < MAX_CPUS; cpu++)
			local |= (cpus & 1ull << cpu) && has_memory(node_of_cpu[cpu]);
		return local ? NULL : "no CPU has local memory";
	}
	return nr_mem_nodes < 2 ? "one node with memory" : NULL;
}

/* The workers: one process per CPU. */

static void account(struct moved *m, int counter, const struct numa_exact_call *call)
{
	for (int nid = 0; nid < MAX_NODES; nid++)
		m->v[nid][counter] += call->got[nid];
}

/* Allocate, and write down what each counter must move by for it. */
static void allocate(int cpu, const struct test *t, struct numa_exact_call *call,
		     unsigned long n)
{
	struct moved *m = &shared->moved[cpu];
	bool miss = t->kind == MISSES;
	uint64_t total = 0;

	call->order = t->order;
	call->batch = t->batch ?: nr_mem_nodes + 1u;
	call->count = n;
	if (ioctl(device, NUMA_EXACT_CALL, call))
		die("CPU %d, test '%s'", cpu, t->name);

	account(m, miss ? MISS : HIT, call);
	for (int nid = 0; nid < MAX_NODES; nid++) {
		m->v[nid][nid == node_of_cpu[cpu] ? LOCAL : OTHER] += call->got[nid];
		m->extra[nid] += call->extra[nid];
		total += call->got[nid];
	}
	if (miss)
		m->v[call->nid][FOREIGN] += total;
	if (total != n)
		die("CPU %d: %lu allocations instead of %lu", cpu, total, n);
}

/* All of it must come from one node. */
static void allocate_on(int cpu, const struct test *t, int op, int nid, unsigned long n)
{
	struct numa_exact_call call = { .op = op, .nid = nid };

	allocate(cpu, t, &call, n);
	if (call.got[nid] != n)
		die("CPU %d: not all from node %d", cpu, nid);
}

/* A share of each node, by weight. */
static void allocate_shares(int cpu, const struct test *t, int op, int mode)
{
	struct numa_exact_call call = { .op = op, .nid = mem_nodes[0] };
	uint64_t nodes = 0;
	int weights = 0;

	for (int i = 0; i < nr_mem_nodes; i++) {
		nodes |= 1ull << mem_nodes[i];
		weights += mode == MPOL_INTERLEAVE ? 1 : weight_of(mem_nodes[i]);
	}
	if (set_policy(mode, nodes))
		die("set_mempolicy(%d)", mode);
	allocate(cpu, t, &call, count);
	if (set_policy(MPOL_DEFAULT, 0))
		die("set_mempolicy");
	account(&shared->moved[cpu], INTERLEAVE, &call);

	/* Bulk calls give the remainder of each to the same node. */
	for (int i = 0; i < nr_mem_nodes && op == NUMA_EXACT_TASK; i++) {
		int nid = mem_nodes[i];
		int weight = mode == MPOL_INTERLEAVE ? 1 : weight_of(nid);
		long off = call.got[nid] * weights - count * weight;

		if (labs(off) > weights * weights)
			die("CPU %d: node %d gave %llu of %lu", cpu, nid, call.got[nid], count);
	}
}

static void run_test(int cpu, const struct test *t)
{
	int own = node_of_cpu[cpu], others = nr_mem_nodes - has_memory(own);
	struct numa_exact_call call = { .op = NUMA_EXACT_CPUSET };

	switch (t->kind) {
	case LOCALLY:
		if (has_memory(own))
			allocate_on(cpu, t, NUMA_EXACT_NODE, own, count);
		break;
	case REMOTELY:
		for (int i = 0; i < others; i++)
			allocate_on(cpu, t, NUMA_EXACT_NODE, remote_node(own, i), count / others);
		break;
	case BULKS:
		for (int i = 0; i < nr_mem_nodes; i++)
			allocate_on(cpu, t, NUMA_EXACT_BULK_NODE, mem_nodes[i], count / nr_mem_nodes);
		break;
	case INTERLEAVES:
		allocate_shares(cpu, t, NUMA_EXACT_TASK, MPOL_INTERLEAVE);
		break;
	case WEIGHTED:
		allocate_shares(cpu, t, NUMA_EXACT_TASK, MPOL_WEIGHTED_INTERLEAVE);
		break;
	case BULK_INTERLEAVES:
		allocate_shares(cpu, t, NUMA_EXACT_BULK_TASK, MPOL_INTERLEAVE);
		break;
	case BULK_WEIGHTED:
		allocate_shares(cpu, t, NUMA_EXACT_BULK_TASK, MPOL_WEIGHTED_INTERLEAVE);
		break;
	case MISSES:
		/* Each CPU prefers another node than it is allowed to use. */
		enter_cpuset(mem_nodes[cpu % nr_mem_nodes]);
		call.nid = mem_nodes[(cpu + 1) % nr_mem_nodes];
		allocate(cpu, t, &call, count);
		enter_cpuset(-1);
		break;
	}
}

static void worker(int cpu, int start, int done)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin_to_cpu(cpu);
	while (read(start, &byte, 1) == 1) {
		run_test(cpu, &tests[shared->test]);
		fflush(stdout);
		if (write(done, "", 1) != 1)
			_exit(99);
	}
	_exit(0);
}

static void reader(int number)
{
	static struct counters zoneinfo[MAX_NODES];
	struct counters c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		if (__atomic_load_n(&shared->pause, __ATOMIC_SEQ_CST)) {
			__atomic_add_fetch(&shared->standing, 1, __ATOMIC_SEQ_CST);
			while (__atomic_load_n(&shared->pause, __ATOMIC_SEQ_CST))
				usleep(1000);
			__atomic_sub_fetch(&shared->standing, 1, __ATOMIC_SEQ_CST);
		}
		/* The shortest file most often: many reads make the race. */
		for (int i = 0; i < 8; i++)
			for (int nid = 0; nid < nr_nodes; nid++)
				read_numastat(nid, &c);
		for (int nid = 0; nid < nr_nodes; nid++)
			read_node_vmstat(nid, &c);
		read_vmstat(&c);
		read_zoneinfo(zoneinfo);
		shared->reads[number]++;
	}
}

/* What all interfaces say, and what the oracle has seen, at one instant. */

struct snapshot {
	struct counters node[MAX_NODES];
	struct numa_exact_oracle oracle;
	uint64_t pressure;
};

/* Anything that means that memory ran short or was compacted. */
static uint64_t read_pressure(void)
{
	char *text = read_file("/proc/vmstat"), *key;
	uint64_t value, sum = 0;

	if (!text)
		die("/proc/vmstat");
	while (parse_line(&text, &key, &value))
		if (!strncmp(key, "allocstall", 10) || !strcmp(key, "compact_stall") ||
		    !strncmp(key, "pgscan_direct", 13))
			sum += value;
	return sum;
}

/*
 * If the oracle has seen nothing between its two looks, then nothing was
 * counted before the counters were read that it has not seen: SETTLE waits
 * for what was under way.
 */
static void take_snapshot(struct snapshot *s)
{
	static struct counters zoneinfo[MAX_NODES];
	static struct numa_exact_oracle before;
	struct counters c, machine, sum;

	for (int try = 0; try < 200; try++) {
		bool same = true;

		if (ioctl(device, NUMA_EXACT_ORACLE, &before))
			die("oracle");
		memset(s, 0, sizeof(*s));
		memset(&sum, 0, sizeof(sum));
		for (int nid = 0; nid < nr_nodes; nid++) {
			if (!read_numastat(nid, &s->node[nid]))
				continue;
			read_node_vmstat(nid, &c);
			same &= !memcmp(&c, &s->node[nid], sizeof(c));
			for (int i = 0; i < COUNTERS; i++)
				sum.v[i] += c.v[i];
		}
		read_vmstat(&machine);
		same &= !memcmp(machine.v, sum.v, sizeof(sum.v));
		read_zoneinfo(zoneinfo);
		for (int i = 0; i < nr_mem_nodes; i++)
			same &= !memcmp(zoneinfo[mem_nodes[i]].v, s->node[mem_nodes[i]].v,
					sizeof(sum.v));
		s->pressure = read_pressure();
		if (ioctl(device, NUMA_EXACT_SETTLE) ||
		    ioctl(device, NUMA_EXACT_ORACLE, &s->oracle))
			die("oracle");
		if (memcmp(&before, &s->oracle, sizeof(before)))
			continue;
		if (!same)
			printf("# the interfaces contradict each other at rest\n");
		return;
	}
	die("the machine does not come to rest");
}

static int mistakes;

static void expect(int nid, const char *what, uint64_t moved, uint64_t from, uint64_t to)
{
	if (moved >= from && moved <= to)
		return;
	mistakes++;
	printf("# node %d: %s moved by %lu, should be %lu", nid, what, moved, from);
	if (from != to)
		printf(" to %lu", to);
	printf(" (%+ld)\n", (long)(moved < from ? moved - from : moved - to));
}

static void compare(const struct snapshot *before, const struct snapshot *after)
{
	for (int nid = 0; nid < MAX_NODES; nid++) {
		uint64_t given = after->oracle.seen[nid] - before->oracle.seen[nid];
		uint64_t d[COUNTERS], known[COUNTERS] = { 0 }, extra = 0, others;

		for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
			for (int i = 0; i < COUNTERS; i++)
				known[i] += shared->moved[cpu].v[nid][i];
			extra += shared->moved[cpu].extra[nid];
		}
		for (int i = 0; i < COUNTERS; i++)
			d[i] = after->node[nid].v[i] - before->node[nid].v[i];
		others = given - known[HIT] - known[MISS];
		/* Our own numbers contradict each other: the test is wrong. */
		if (given < known[HIT] + known[MISS] || others > 20000)
			die("node %d: %lu seen, %lu known", nid, given, known[HIT] + known[MISS]);

		expect(nid, "hit + miss", d[HIT] + d[MISS], given, given);
		expect(nid, "local + other", d[LOCAL] + d[OTHER], given, given);
		expect(nid, "numa_hit", d[HIT], known[HIT] + others, known[HIT] + others);
		expect(nid, "numa_miss", d[MISS], known[MISS], known[MISS]);
		expect(nid, "numa_foreign", d[FOREIGN], known[FOREIGN], known[FOREIGN]);
		/*
		 * Between its two system calls a thread that interleaves may fault or
		 * need a slab, and these may follow its policy, too.
		 */
		expect(nid, "interleave_hit", d[INTERLEAVE], known[INTERLEAVE],
		       after->oracle.interleaver[nid] - before->oracle.interleaver[nid]);
		expect(nid, "local_node", d[LOCAL], known[LOCAL], known[LOCAL] + others);
		expect(nid, "other_node", d[OTHER], known[OTHER], known[OTHER] + others);
		if (given)
			printf("# node %d: %lu known, %lu others, %lu in our context\n",
			       nid, given - others, others, extra);
	}
}

static void stop_readers(int readers)
{
	__atomic_store_n(&shared->pause, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&shared->standing, __ATOMIC_SEQ_CST) != readers)
		usleep(1000);
}

static void start_readers(void)
{
	__atomic_store_n(&shared->pause, 0, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&shared->standing, __ATOMIC_SEQ_CST))
		usleep(1000);
}

/* All run to our end: one that ends has said why. */
static void child_ended(int signal)
{
	(void)signal;
	_exit(99);
}

int main(int argc, char **argv)
{
	static struct snapshot before, after;
	const int max_readers[] = { 0, 1, 3 };
	const int nr_tests = sizeof(tests) / sizeof(tests[0]);
	int start[MAX_CPUS][2], done[2];
	int number = 0, failures = 0, readers = 0;
	char byte;

	signal(SIGCHLD, child_ended);
	setvbuf(stdout, NULL, _IOLBF, 0);
	count = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
	device = open("/dev/numa_exact", O_RDWR);
	if (device < 0)
		die("/dev/numa_exact");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	find_machine();
	/* A number that each test can divide by its nodes. */
	count -= count % 840;
	if (nr_mem_nodes > 1)
		set_up();

	if (pipe(done))
		die("pipe");
	for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
		if (!(cpus & 1ull << cpu))
			continue;
		if (pipe(start[cpu]))
			die("pipe");
		if (!fork()) {
			close(start[cpu][1]);
			worker(cpu, start[cpu][0], done[1]);
		}
	}

	printf("TAP version 13\n1..%d\n", nr_tests * 3);
	printf("# %lu allocations on each CPU\n", count);
	shared->pause = 1;
	take_snapshot(&before);
	for (int r = 0; r < 3; r++) {
		for (; readers < max_readers[r]; readers++)
			if (!fork())
				reader(readers);
		stop_readers(readers);
		take_snapshot(&before);

		for (int i = 0; i < nr_tests; i++) {
			const struct test *t = &tests[i];
			unsigned long reads = 0;

			number++;
			if (cannot(t)) {
				printf("ok %d %s, %d readers # SKIP %s\n", number,
				       t->name, readers, cannot(t));
				continue;
			}
			mistakes = 0;
			shared->test = i;
			memset(shared->moved, 0, sizeof(shared->moved));
			memset(shared->reads, 0, sizeof(shared->reads));
			start_readers();
			for (int cpu = 0; cpu < MAX_CPUS; cpu++)
				if ((cpus & 1ull << cpu) && write(start[cpu][1], "", 1) != 1)
					die("start");
			for (int cpu = 0; cpu < MAX_CPUS; cpu++)
				if ((cpus & 1ull << cpu) && read(done[0], &byte, 1) != 1)
					die("done");
			stop_readers(readers);
			take_snapshot(&after);

			compare(&before, &after);
			if (before.oracle.lost != after.oracle.lost)
				die("the oracle could not see all");
			if (before.pressure != after.pressure)
				die("memory ran short");
			for (int k = 0; k < readers; k++)
				reads += shared->reads[k];
			if (readers)
				printf("# %lu rounds of reading, each with 8 of numastat\n", reads);
			failures += mistakes != 0;
			printf("%s %d %s, %d readers\n", mistakes ? "not ok" : "ok",
			       number, t->name, readers);
			before = after;
		}
	}
	if (nr_mem_nodes > 1)
		clean_up();
	return failures != 0;
}
