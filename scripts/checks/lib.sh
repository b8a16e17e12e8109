# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What the checks share: which files the series touches, directories to compile
# them in, and the rule that nothing may be worse than in the base. Source it.

# Named from the top: beside a reader in full/, ../lib.sh would be this file.
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
# shellcheck source=scripts/lib-tree.sh
. "$ROOT/scripts/lib-tree.sh"
LINUX_BASE=$LINUX-base
WORK=$BUILD/check/${PART:-$(name=${0##*/}; echo "${name#*-}")}
mkdir -p "$WORK"

skip() { say "skipped: $*"; exit 77; }
[ -d "$LINUX_BASE" ] || die "there is no tree in $LINUX" "make tree"
[ "$(lgit rev-list --count base..series)" -gt 0 ] || skip "the series has no commit"

# older COMMIT: checks it out in $OLDER, a worktree that is kept, so that make compiles
# only what differs.
OLDER=$BUILD/check/older
older() {
	if ! git -C "$OLDER" rev-parse --quiet --verify HEAD > /dev/null 2>&1; then
		rm -rf "$OLDER"
		lgit worktree prune
		lgit worktree add --quiet --detach "$OLDER" "$1"
	fi
	git -C "$OLDER" checkout --quiet --detach "$1"
}

# touched [PATHSPEC]...: the files that the series leaves changed or new.
touched() { lgit diff --name-only --diff-filter=d base series -- "$@"; }

# Code of the kernel proper; what stands under tools/ is built by other means.
touched_code() { touched '*.c' '*.h' ':!tools' ':!samples' ':!scripts' ':!usr'; }

# header_users: .c files that use a function or macro whose declaration in a
# header the series adds, changes or removes: what stands at the start of a line
# of the diff. A name with more than 30 users is a common one, and there by chance.
header_users() {
	local name users

	touched 'include/*.h' 'arch/*/include/*.h' | xargs -r git -C "$LINUX" diff -U0 base series -- |
		sed -nE 's/^[-+](#define|[a-z][^(]*[ *])[ *]*([a-z_][a-z0-9_]{5,})\(.*/\2/p' | sort -u |
		while read -r name; do
			users=$(lgit grep -lw -e "$name" series -- '*.c' ':!tools' ':!arch' | cut -d: -f2) || continue
			[ "$(wc -l <<< "$users")" -gt 30 ] || echo "$users"
		done | sort -u
}

# objects TREE OUT FILE...: the objects that the configuration of OUT makes of
# those .c files. One that is included in another .c file stands for that one.
objects() {
	local tree=$1 out=$2 file dir made includer
	shift 2

	for file; do
		[ -f "$tree/$file" ] || continue
		dir=$(dirname "$file")
		while [ ! -f "$tree/$dir/Makefile" ] && [ "$dir" != . ]; do
			dir=$(dirname "$dir")
		done
		entered "$tree" "$out" "$dir" || continue
		made=$(makefile_objects "$tree" "$out" "$dir")
		if grep -qxF "${file%.c}.o" <<< "$made"; then
			echo "${file%.c}.o"
		else
			includer=$(cd "$tree" && grep -lE "#[[:space:]]*include \"([^\"]*/)?$(basename "$file")\"" \
				"$dir"/*.c "$(dirname "$file")"/*.c 2>/dev/null | sort -u) || continue
			for includer in $includer; do
				grep -xF "${includer%.c}.o" <<< "$made" || true
			done
		fi
	done | sort -u
}

# entered TREE OUT DIR: does the build go into DIR at all?
entered() {
	local parent
	parent=$(dirname "$3")
	[ "$parent" != . ] || return 0
	entered "$1" "$2" "$parent" && makefile_objects "$1" "$2" "$parent" | grep -xF "$3/" > /dev/null
}

# makefile_objects TREE OUT DIR: what DIR's Makefile adds to the kernel.
makefile_objects() {
	make -s -r -C "$2" -f - objects <<MAKE
include include/config/auto.conf
srctree := $1
src := $1/$3
obj := $3
include $1/$3/Makefile
all := \$(obj-y) \$(obj-m) \$(lib-y)
objects:; @printf '%s\\n' \$(addprefix $3/,\$(all) \$(foreach o,\$(all),\$(\$(o:.o=-y)) \$(\$(o:.o=-objs))))
.PHONY: objects
.DEFAULT_GOAL := objects
MAKE
}

# kmake TREE OUT ARGUMENT...: a make above us must not hand down its flags.
kmake() {
	local tree=$1 out=$2
	shift 2
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL \
		make -C "$tree" O="$out" ARCH="${ARCH:-x86_64}" LOCALVERSION= "$@"
}

# kunit_suites TREE COMMIT: those that COMMIT, which TREE has, adds to the base or
# changes, as kunit_suites= of the guest's test kunit takes them.
kunit_suites() {
	lgit diff --name-only --diff-filter=d base "$2" -- '*.c' '*.h' ':!tools' | sed "s|^|$1/|" |
		xargs -r awk '/struct kunit_suite .*=/,/^};/' |
		sed -nE 's/^\s*\.name\s*=\s*"([^"]+)".*/\1/p' | paste -sd,
}

# configure TREE OUT [FRAGMENT]...: the project's configuration for that tree, with
# $KIND.config in place of test.config if KIND is set, then FRAGMENTs, the last word
# winning; every line of a FRAGMENT has to be in effect. Prepared for compiling
# single objects.
configure() {
	local tree=$1 out=$2 all line
	shift 2
	all=$out/all.config

	mkdir -p "$out"
	cat "$ROOT"/configs/{00-base,numa,"${KIND:-test}"}.config > "$all.new"
	[ "$tree" = "$LINUX_BASE" ] || cat "$ROOT/configs/series.config" >> "$all.new"
	cat /dev/null "$@" >> "$all.new"
	# Kconfig is asked again only when the answer can differ. What the tree has since
	# it was last asked would be off, although a fragment wants it.
	git -C "$tree" ls-files -s '*Kconfig*' | sha1sum | sed 's/^/# Kconfig files: /' >> "$all.new"
	if ! cmp -s "$all.new" "$all" || [ ! -f "$out/.config" ]; then
		mv "$all.new" "$all"
		kmake "$tree" "$out" KCONFIG_ALLCONFIG="$all" allnoconfig > "$out/config.log" 2>&1 ||
			{ tail -n 20 "$out/config.log"; return 1; }
	fi
	kmake "$tree" "$out" -j"$JOBS" olddefconfig prepare > "$out/prepare.log" 2>&1 ||
		{ tail -n 20 "$out/prepare.log"; return 1; }
	[ $# -eq 0 ] || cat "$@" | grep -E '^(CONFIG_|# CONFIG_.* is not set)' | while read -r line; do
		in_effect "$line" "$out/.config" || {
			say "$out: not in effect: $line"
			return 1
		}
	done
}
# A symbol whose dependencies are not met does not stand in .config: it is off.
in_effect() {
	case $1 in
	'#'*) ! grep -q "^$(cut -d' ' -f2 <<< "$1")=" "$2" ;;
	*)    grep -qxF "$1" "$2" ;;
	esac
}

# not_worse WHAT BASE-FILE SERIES-FILE: fail with the lines that only the series
# has. Both are lists of findings without line numbers, so that code which only
# moved is no finding.
not_worse() {
	local new

	new=$(comm -13 <(sort "$2") <(sort "$3"))
	if [ -n "$new" ]; then
		printf '%s\n' "$new"
		say "$(wc -l <<< "$new") $1 that the base does not have"
		return 1
	fi
	say "no $1 that the base does not have ($(wc -l < "$3") in the series, $(wc -l < "$2") in the base)"
}

# plain TREE: findings without TREE's own path and without line numbers, as gcc
# (FILE:LINE:COLUMN: ...) and kernel-doc (Warning: FILE:LINE ...) write them.
plain() {
	sed -E "s#($1|\.\.|\./)/+##g; s#^([^: ]+):[0-9]+(:[0-9]+(-[0-9]+)?)?:#\1:#; s#^(Warning: [^: ]+):[0-9]+ #\1 #; s#\<on line [0-9]+#on line#g"
}

# emulator_died CONSOLE THREADS: the one fault that a boot is repeated for: QEMU's, see
# 60-guest. In one thread it happens only while the kernel boots, before any test. With
# more, also later: whatever takes cpusets into use, say, has the kernel patch a key.
emulator_died() {
	grep -q 'Oops: int3: 0000' "$1" &&
		{ [ "$2" = multi ] || ! grep -q 'Run /init as init process' "$1"; }
}

# build_kernel KIND [FRAGMENT]...: build base or series, or another O= directory, with
# those fragments of configs/, and its modules. Sets KERNEL to the directory, and ALLOW
# to a file of what the fragments' .allow files say of the kernel's messages.
build_kernel() {
	local fragment
	KERNEL=$1
	shift
	case $KERNEL in
	base|series)
		[[ " $* " != *" kcsan "* ]] || MAKE_WORDS=${MAKE_WORDS:-$(kcsan_words)}
		MAKE_WORDS=${MAKE_WORDS:-} "$ROOT/scripts/build-kernel" "$KERNEL" "${@/#/--config=}"
		for fragment; do
			KERNEL+=-$fragment
			[ ! -f "$ROOT/configs/$fragment.allow" ] || cat "$ROOT/configs/$fragment.allow"
		done > "$WORK/allow"
		KERNEL=$BUILD/$KERNEL
		export ALLOW=$WORK/allow ;;
	esac
	"$ROOT/scripts/build-modules" "$KERNEL"
}

# kcsan_words: words for make, so that KCSAN instruments no object but those of the
# touched files, and of these not the ones that the base leaves out for races of its own
# (their Makefile says so).
kcsan_words() {
	local file stem words="KCSAN_SANITIZE=n"
	while read -r file; do
		stem=$(basename "$file" .c)
		grep -qE "^KCSAN_SANITIZE_$stem\.o *:?= *n" "$LINUX/$(dirname "$file")/Makefile" ||
			words+=" KCSAN_SANITIZE_$stem.o=y"
	done < <(touched_code | grep -E '^(mm|kernel|drivers|fs|lib)/.*\.c$')
	echo "$words"
}
