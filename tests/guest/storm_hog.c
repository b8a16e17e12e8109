// SPDX-License-Identifier: GPL-2.0
/* storm_hog: takes all memory, until it is killed for it. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(void)
{
	for (;;) {
		char *map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (map == MAP_FAILED)
			return 1;
		memset(map, 1, 1 << 20);
	}
}
