#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# shellcheck disable=SC2030,SC2031 # each test is a subshell, and its results stay in it
# scripts/progress; when scripts/build-kernel builds and what it says, on a tree
# that only plays kernel; and the fragments of configs/, on build/linux, which is
# made if need be.

setup() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	BUILD=${BUILD_DIR:-$ROOT/build}
	OUT=bats-config-$BATS_TEST_NUMBER
	LOG=$BATS_TEST_TMPDIR/log
}

teardown() {
	rm -rf "${BUILD:?}/$OUT" "$BUILD/logs/config-$OUT.log"
}

configure() { "$ROOT/scripts/build-kernel" "$@" --out "$OUT" --configure-only; }
settings() { grep -E '^(# )?CONFIG_' "$BUILD/$OUT/.config" | sort; }

@test "progress keeps its input whole, also an unfinished last line" {
	printf '  CC      a.o\n\n\\ *\nwarning: x\nlast' > "$LOG.in"
	"$ROOT/scripts/progress" --log "$LOG" < "$LOG.in"
	cmp "$LOG.in" "$LOG"
}

# on_terminal STEPS PAUSE TOTAL: what progress writes to a terminal meanwhile.
on_terminal() {
	# script runs the command in $SHELL, which need not be bash, nor be set.
	SHELL=$BASH script --quiet --command \
		"for i in {1..$1}; do echo '  CC      x.o'; sleep $2; done | '$ROOT/scripts/progress' --log '$LOG' --label x --total $3" \
		/dev/null
}

@test "progress shows count, total and time left on a terminal" {
	run on_terminal 120 0.1 2000
	[[ $output =~ "x: "[0-9]+" of 2000 steps, "[0-9]+" min left" ]]
}

@test "progress that counts past its total says no total" {
	run on_terminal 25 0.1 5
	[[ $output =~ "x: "[0-9]+" steps, 0 min "[0-9]+" s" ]]
}

@test "every fragment opens with what it is for" {
	for f in "$ROOT"/configs/*.config; do
		head -n 1 "$f" | grep -q '^# [A-Z]'
	done
}

@test "no two default fragments name the same symbol" {
	run bash -c "grep -hoE '^CONFIG_[A-Z0-9_]+' '$ROOT'/configs/{00-base,numa,test,series}.config | sort | uniq -d"
	[ -z "$output" ]
}

@test "a symbol that did not take fails, and is named" {
	echo CONFIG_NO_SUCH_SYMBOL=y > "$BATS_TEST_TMPDIR/bad.config"
	run configure base --config "$BATS_TEST_TMPDIR/bad.config"
	[ "$status" -ne 0 ]
	[[ $output = *"Value requested for CONFIG_NO_SUCH_SYMBOL not in final .config"* ]]
}

@test "base and series are configured alike but for series.config" {
	configure base
	settings > "$BATS_TEST_TMPDIR/base"
	configure series
	settings > "$BATS_TEST_TMPDIR/series"
	diff <(comm -13 "$BATS_TEST_TMPDIR"/{base,series}) <(grep '^CONFIG_' "$ROOT/configs/series.config" | sort)
	[ -z "$(comm -23 "$BATS_TEST_TMPDIR"/{base,series})" ]
}

@test "every fragment for a debug kernel takes" {
	for f in lockdep kasan kcsan rt kmemleak faultinject debug-info; do
		configure base --config "$f"
	done
}

# fake_tree: a checkout whose build/linux "builds" in an instant and says what
# its file "output" says.
fake_tree() {
	CO=$BATS_TEST_TMPDIR/co
	unset BUILD_DIR
	mkdir -p "$CO/build/linux/scripts/kconfig"
	cp -r "$ROOT/scripts" "$ROOT/configs" "$CO/"
	printf '#!/bin/sh\n' > "$CO/scripts/make-tree"
	cd "$CO/build/linux" || return
	cat > scripts/kconfig/merge_config.sh <<-'EOF'
	#!/bin/sh
	touch "$4/.config"
	EOF
	chmod +x scripts/kconfig/merge_config.sh
	cat > Makefile <<-'EOF'
	.RECIPEPREFIX = >
	all:
	> @mkdir -p $O/arch/x86/boot $O/include/config
	> @cat output
	> @! grep -q 'error:' output
	> @touch $O/arch/x86/boot/bzImage $O/Module.symvers
	> @echo 7.3.4 > $O/include/config/kernel.release
	EOF
	echo '  CC      a.o' > output
	git init --quiet
	git_commit
	git tag base
}
git_commit() {
	git add --all
	git -c user.name=x -c user.email=x@localhost commit --quiet --message x
}
fake_build() { run "$CO/scripts/build-kernel" series "$@"; echo "$output"; }
built()      { [ "$status" = 0 ] && [[ $output = *"bzImage: Linux 7.3.4"* ]]; }
up_to_date() { [ "$status" = 0 ] && [[ $output = *"series is up to date"* ]]; }

@test "a kernel is built once, and again when something changed" {
	fake_tree
	fake_build; built
	fake_build; up_to_date

	echo '  CC      b.o' > output
	fake_build; built
	fake_build; built		# only make knows what a change needs
	git checkout --quiet output
	fake_build; built		# from the changed source to the committed
	fake_build; up_to_date
	echo '  CC      b.o' > output
	git_commit
	fake_build; built
	fake_build; up_to_date

	echo CONFIG_X=y >> "$CO/configs/test.config"
	fake_build; built
	fake_build; up_to_date
	echo CONFIG_X=y >> "$CO/build/series/.config"
	fake_build; built
	fake_build; up_to_date
	rm "$CO/build/series/arch/x86/boot/bzImage"
	fake_build; built
}

@test "a source that is changed and restored while it is built is built again" {
	fake_tree
	sed -i 's/@cat output/@cat output; sleep 0.1; touch Makefile/' Makefile
	git_commit
	fake_build; built
	fake_build; built
}

@test "a fragment makes a kernel of its own" {
	fake_tree
	fake_build --config kasan; built
	[ -f "$CO/build/series-kasan/arch/x86/boot/bzImage" ]
	[ ! -e "$CO/build/series" ]
	fake_build --config no-such
	[ "$status" = 1 ]
	[[ $output = *"no such fragment"*"way out:"* ]]
}

@test "compiler warnings are shown and counted" {
	fake_tree
	printf '%s\n' '  CC      a.o' 'a.c:1: warning: one' 'b.c:2: warning: two' > output
	git_commit
	fake_build; built
	[[ $output = *"a.c:1: warning: one"*"b.c:2: warning: two"*"2 compiler warnings"* ]]
}

@test "a build that fails says where, and is not taken for built" {
	fake_tree
	printf '%s\n' '  CC      a.o' 'a.c:1: error: no' '  CC      b.o' > output
	git_commit
	fake_build
	[ "$status" = 1 ]
	[[ $output = *"a.c:1: error: no"*"the build of series failed"*"way out:"*"kernel-series.log"* ]]
	fake_build
	[ "$status" = 1 ]
}
