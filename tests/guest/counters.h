/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The NUMA event counters as the kernel's four interfaces show them. A static
 * helper of the guest's tests: errors end the program.
 */
#ifndef COUNTERS_H
#define COUNTERS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_NODES 64
#define MPOL_DEFAULT 0
#define MPOL_PREFERRED 1
#define MPOL_INTERLEAVE 3
#define MPOL_WEIGHTED_INTERLEAVE 6

enum { HIT, MISS, FOREIGN, INTERLEAVE, LOCAL, OTHER, COUNTERS };

/* In nodeN/numastat, and everywhere else. */
static const char *const numastat_names[COUNTERS] = {
	"numa_hit", "numa_miss", "numa_foreign",
	"interleave_hit", "local_node", "other_node",
};
static const char *const vmstat_names[COUNTERS] = {
	"numa_hit", "numa_miss", "numa_foreign",
	"numa_interleave", "numa_local", "numa_other",
};

struct counters {
	uint64_t v[COUNTERS];
	int lines;		/* how many lines the values come from */
};

static inline void die(const char *format, ...)
{
	va_list args;

	printf("Bail out! ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf(" (%s)\n", strerror(errno));
	exit(99);
}

/* Returns NULL when there is no such file: nodes come and go. */
static inline char *read_file(const char *path)
{
	static char buf[1 << 20];
	size_t len = 0;
	ssize_t n;
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return NULL;
	while ((n = read(fd, buf + len, sizeof(buf) - 1 - len)) > 0)
		len += n;
	close(fd);
	if (n < 0)
		return NULL;
	buf[len] = 0;
	return buf;
}

/* The parts of "  KEY VALUE\n" at *text; moves *text to the next line. */
static inline bool parse_line(char **text, char **key, uint64_t *value)
{
	char *line = *text, *end = strchr(line, '\n');

	if (!end)
		return false;
	*end = 0;
	*text = end + 1;
	line += strspn(line, " ");
	*key = line;
	line += strcspn(line, " ");
	*value = 0;
	if (*line) {
		*line++ = 0;
		*value = strtoull(line, NULL, 10);
	}
	return true;
}

static inline void add_line(struct counters *c, const char *const *names,
			    const char *key, uint64_t value)
{
	for (int i = 0; i < COUNTERS; i++) {
		if (!strcmp(key, names[i])) {
			c->v[i] += value;
			c->lines++;
			return;
		}
	}
}

static inline bool read_counters(const char *path, const char *const *names,
				 struct counters *c)
{
	char *text = read_file(path), *key;
	uint64_t value;

	memset(c, 0, sizeof(*c));
	if (!text)
		return false;
	while (parse_line(&text, &key, &value))
		add_line(c, names, key, value);
	if (c->lines != COUNTERS)
		die("%s has %d NUMA counters, not six", path, c->lines);
	return true;
}

static inline bool read_numastat(int nid, struct counters *c)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/numastat", nid);
	return read_counters(path, numastat_names, c);
}

static inline bool read_node_vmstat(int nid, struct counters *c)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/vmstat", nid);
	return read_counters(path, vmstat_names, c);
}

static inline void read_vmstat(struct counters *c)
{
	if (!read_counters("/proc/vmstat", vmstat_names, c))
		die("/proc/vmstat");
}

/* For each node the sum over its populated zones; lines is 0 without any. */
static inline void read_zoneinfo(struct counters *nodes)
{
	char *text = read_file("/proc/zoneinfo"), *key;
	uint64_t value;
	int nid = -1;

	if (!text)
		die("/proc/zoneinfo");
	memset(nodes, 0, MAX_NODES * sizeof(*nodes));
	while (parse_line(&text, &key, &value)) {
		/* "Node 0, zone   Normal" */
		if (!strcmp(key, "Node"))
			nid = value;
		else if (nid >= 0)
			add_line(&nodes[nid], vmstat_names, key, value);
	}
	for (nid = 0; nid < MAX_NODES; nid++)
		if (nodes[nid].lines % COUNTERS)
			die("zoneinfo: node %d has %d lines", nid, nodes[nid].lines);
}

/* "0-2,4" of a file in sysfs, as a bit mask. */
static inline uint64_t read_list(const char *path)
{
	char *text = read_file(path);
	uint64_t mask = 0;

	if (!text)
		die("%s", path);
	while (*text >= '0' && *text <= '9') {
		long first = strtol(text, &text, 10), last = first;

		if (*text == '-')
			last = strtol(text + 1, &text, 10);
		for (; first <= last; first++)
			mask |= 1ull << first;
		if (*text == ',')
			text++;
	}
	return mask;
}

static inline void pin_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("cannot run on CPU %d", cpu);
}

static inline int set_policy(int mode, uint64_t nodes)
{
	return syscall(SYS_set_mempolicy, mode, mode ? &nodes : NULL,
		       mode ? MAX_NODES + 1 : 0);
}

#endif
