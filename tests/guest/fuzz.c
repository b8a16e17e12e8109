// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz PATH VALUES WRITES SEED: writes that are nearly right, and others, to a file
 * that takes one number. VALUES are those that it may take, as in the file knobs.
 *
 * What the kernel accepts has to be a number of VALUES and to read back. What it
 * refuses leaves the old number. A number of VALUES in decimal, alone on a line, has
 * to be accepted. WRITES may be a time instead: "30s". TAP; a failure prints what was
 * written, as printf of the shell takes it.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *path;
static uint64_t least, most, state;
static bool powers;
static char text[3 * 4096];

static uint64_t rnd(uint64_t limit)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % limit;
}

static bool allowed(uint64_t value)
{
	return value >= least && value <= most &&
	       (!powers || !(value & (value - 1)));
}

static uint64_t any_allowed(void)
{
	uint64_t value;

	do {
		value = powers ? 1ull << rnd(64) : least + rnd(most - least + 1);
	} while (!allowed(value));
	return value;
}

/* Bounds, their neighbours, what wraps around at 32 and 64 bits, and anything. */
static uint64_t some_number(void)
{
	uint64_t edges[] = { 0, least, most, 1ull << 31, 1ull << 32, 1ull << 63,
			     any_allowed(), (1ull << 32) + any_allowed(), rnd(-1) };
	uint64_t value = edges[rnd(sizeof(edges) / sizeof(*edges))];

	return value + rnd(3) - 1;
}

static const char *one_of(const char *const *list, int nr)
{
	return list[rnd(nr)];
}

/* Returns the length. */
static size_t some_text(void)
{
	static const char *const before[] = { "", "", "", " ", "\t ", "\n", "+", "-", "--",
					      "0", "0x", "00000000000000000000", "\v" };
	static const char *const formats[] = { "%llu", "%llu", "%llu", "%llx", "0x%llx",
					       "0%llo", "%llu.0", "%llue0", "%lld" };
	static const char *const after[] = { "\n", "\n", "", " ", "\n\n", " 1", "x", "k",
					     "\t\n", ",", "\r\n", "\n0\n", "\xff" };
	size_t len, at;

	if (!rnd(16)) {		/* anything at all */
		len = rnd(rnd(4) ? 32 : sizeof(text));
		for (at = 0; at < len; at++)
			text[at] = rnd(256);
		return len;
	}
	if (!rnd(16)) {		/* digits without end */
		len = rnd(sizeof(text));
		memset(text, '0' + rnd(10), len);
		if (len)
			text[len - 1] = '0' + rnd(10);
		return len;
	}
	len = sprintf(text, "%s", one_of(before, 13));
	len += sprintf(text + len, one_of(formats, 9), (unsigned long long)some_number());
	len += sprintf(text + len, "%s", one_of(after, 13));
	switch (rnd(8)) {
	case 0:			/* a byte more, a null byte mostly */
		at = rnd(len + 1);
		memmove(text + at + 1, text + at, len - at);
		text[at] = rnd(3) ? 0 : rnd(256);
		return len + 1;
	case 1:			/* a byte less */
		at = rnd(len);
		memmove(text + at, text + at + 1, len - at);
		return len - 1;
	}
	return len;
}

static bool get(uint64_t *value)
{
	char buf[64], *end;
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	buf[n] = 0;
	*value = strtoull(buf, &end, 0);
	return end > buf && *end == '\n';
}

static ssize_t put(size_t len)
{
	int fd = open(path, O_WRONLY | O_TRUNC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, len);
	if (n < 0)
		n = -errno;
	close(fd);
	return n;
}

static bool blank(size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!isspace((unsigned char)text[i]))
			return false;
	return true;
}

static void complain(const char *what, size_t len, ssize_t ret, uint64_t old, uint64_t new)
{
	size_t i;

	printf("# %s: %llu, then %llu; write of %zu bytes returned %zd: '", what,
	       (unsigned long long)old, (unsigned long long)new, len, ret);
	for (i = 0; i < len && i < 64; i++)
		printf(isalnum((unsigned char)text[i]) ? "%c" : "\\%03o",
		       (unsigned char)text[i]);
	puts(len > 64 ? "'..." : "'");
}

static int number;

static bool result(unsigned long bad, const char *what)
{
	printf("%sok %d %s: %s\n", bad ? "not " : "", ++number, path, what);
	return !bad;
}

int main(int argc, char **argv)
{
	unsigned long writes, i, accepted = 0, lost = 0, changed = 0, wrong = 0, refused = 0;
	const char *values;
	time_t end = 0;
	uint64_t old, new, first;
	char *unit;

	if (argc != 5) {
		fprintf(stderr, "usage: fuzz PATH VALUES WRITES SEED\n");
		return 2;
	}
	path = argv[1];
	values = argv[2];
	powers = !strncmp(values, "pow2:", 5);
	if (powers)
		values += 5;
	if (sscanf(values, "%llu-%llu", (unsigned long long *)&least,
		   (unsigned long long *)&most) != 2 || least > most) {
		fprintf(stderr, "fuzz: '%s' is no MIN-MAX\n", values);
		return 2;
	}
	writes = strtoul(argv[3], &unit, 10);
	if (*unit == 's') {
		end = time(NULL) + writes;
		writes = -1;
	}
	/* Never 0, and different for neighbours. */
	state = strtoull(argv[4], NULL, 10) * 0x9e3779b97f4a7c15 | 1;

	puts("TAP version 13\n1..4");
	if (!get(&first)) {
		printf("Bail out! %s cannot be read\n", path);
		return 1;
	}
	old = first;
	for (i = 0; i < writes && (!end || time(NULL) < end); i++) {
		bool good = !rnd(4);
		size_t len = good ? (size_t)sprintf(text, "%llu\n", (unsigned long long)any_allowed()) :
				    some_text();
		ssize_t ret = put(len);

		if (!get(&new)) {
			complain("does not read back", len, ret, old, 0);
			wrong++;
			break;
		}
		/* As any sysctl: nothing written is nothing done. */
		if (ret < 0 || !len) {
			if (new != old) {
				complain("refused, but changed", len, ret, old, new);
				changed++;
			}
			if (ret < 0 && good) {
				complain("refused, but right", len, ret, old, new);
				refused++;
			}
		} else {
			text[len] = 0;
			accepted++;
			if (!allowed(new)) {
				complain("accepted, but wrong", len, ret, old, new);
				wrong++;
			} else if (strtoull(text, NULL, 0) != new || blank(len)) {
				complain("accepted, but not what was written", len, ret, old, new);
				lost++;
			}
		}
		old = new;
		if (wrong + lost + changed + refused > 20)
			break;
	}
	sprintf(text, "%llu\n", (unsigned long long)first);
	put(strlen(text));
	printf("# %s: seed %s, %lu writes, %lu accepted\n", path, argv[4], i, accepted);
	return !(result(wrong, "accepts nothing but its values") &
		 result(lost || !accepted, "what it accepts reads back") &
		 result(changed, "what it refuses changes nothing") &
		 result(refused, "takes each of its values"));
}
