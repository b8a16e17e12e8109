# SPDX-License-Identifier: GPL-2.0
# The front door: each target is one script in scripts/. `make help` lists them.

# A variable given to make, as in `make boot TOPO=4n`, is in the environment of
# the script; scripts/boot --help and the others say which they know.

.DEFAULT_GOAL := help
.PHONY: help demo check check-full bench bench-compare results tree export kernel \
	kernel-base guest boot shell deb install-deps

help: ## this list
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo 'Minutes are for two cores and no KVM, from nothing; a second run takes less.'

demo: ## show everything at work, from a bare machine to a NUMA guest (12 min)
	@scripts/demo

check: ## all tests of the series and its tools (50 min)
	@scripts/check $(CHECKS)

check-full: ## debug kernels, hotplug, every topology: by hand or nightly (hours)
	@scripts/check-full $(CHECKS)

bench: ## base against series: figures, ratios, plots in build/results (75 min)
	@scripts/bench $(CASES)

bench-%: ## one case of the bench; scripts/bench --list names them
	@scripts/bench $*

bench-compare: ## hold build/results against the committed figures
	@scripts/bench --compare

results: ## docs/results.md from the committed figures of bench/results.json
	@scripts/results

tree: ## build/linux: the base, a tag for each topic, branch series (2 min)
	@scripts/make-tree

export: ## write patches/ from branch series of build/linux
	@scripts/export-patches

kernel: ## build/series: the kernel with the series (9 min)
	@scripts/build-kernel series

kernel-base: ## build/base: the kernel without it (9 min)
	@scripts/build-kernel base

guest: ## build/guest: the initramfs that the kernels boot into (1 min)
	@scripts/build-guest

boot: ## boot a kernel: TOPO=2n KERNEL=base INITRD= APPEND= ICOUNT=1 QEMU_ARGS=
	@scripts/boot

shell: ## the same with a shell in the guest
	@scripts/boot --shell

deb: ## installable packages with Debian's configuration (hours)
	@scripts/build-deb

install-deps: ## the Debian packages that all of this needs (packages.list)
	@scripts/install-deps
