#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# scripts/install-deps, with an apt-get that only notes how it was called.
load fake-base

setup() {
	setup_checkout
	mkdir "$BATS_TEST_TMPDIR/bin"
	# shellcheck disable=SC2016 # for the fakes, not for us
	printf '#!/bin/sh\necho "apt-get $*" >> "%s/calls"\nexit ${APT_RC:-0}\n' "$BATS_TEST_TMPDIR" > "$BATS_TEST_TMPDIR/bin/apt-get"
	# As root there is no sudo to go through; as a person there must be one.
	printf '#!/bin/sh\nexec "$@"\n' > "$BATS_TEST_TMPDIR/bin/sudo"
	chmod +x "$BATS_TEST_TMPDIR/bin"/*
	PATH=$BATS_TEST_TMPDIR/bin:$PATH
}

@test "install-deps: nothing missing: silent, and apt is not called" {
	printf '# remark\n\nbash # why\ncoreutils\n' > "$CO/packages.list"
	run "$CO/scripts/install-deps"
	[ "$status" = 0 ]
	[ -z "$output" ]
	[ ! -e "$BATS_TEST_TMPDIR/calls" ]
}

@test "install-deps: says what is missing, then updates and installs just that" {
	printf 'bash # why\nno-such-package # why\nnor-this\n' > "$CO/packages.list"
	run "$CO/scripts/install-deps"
	[ "$status" = 0 ]
	[[ $output = *"installing 2 packages"*"no-such-package nor-this"* ]]
	[ "$(cat "$BATS_TEST_TMPDIR/calls")" = "apt-get update
apt-get install --yes --no-install-recommends no-such-package nor-this" ]
}

@test "install-deps: a failure names the way out" {
	echo no-such-package > "$CO/packages.list"
	APT_RC=100 run "$CO/scripts/install-deps"
	[ "$status" = 1 ]
	[[ $output = *"way out: "*"apt-get install no-such-package"* ]]
}

@test "install-deps: every package of packages.list exists, with a reason" {
	run awk '!/^#/ && NF && $2 != "#"' "$TOP/packages.list"
	[ -z "$output" ]
	mapfile -t packages < <(awk '!/^#/ && NF { print $1 }' "$TOP/packages.list")
	# Known by name is not enough: there must be a version to install.
	apt-cache policy "${packages[@]}" | awk '/^[^ ]/ { p = $1 } /Candidate: [0-9]/ { print p }' |
		sort > "$BATS_TEST_TMPDIR/known"
	[ -s "$BATS_TEST_TMPDIR/known" ] || skip "this machine has no package lists"
	printf '%s:\n' "${packages[@]}" | sort | diff - "$BATS_TEST_TMPDIR/known"
}
