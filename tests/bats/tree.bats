#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# scripts/make-tree and scripts/export-patches.
bats_require_minimum_version 1.5.0
load fake-base

setup() { setup_checkout; cached_base; }

@test "tree: tags, branch and base worktree are as documented" {
	make_tree
	[ "$(git -C "$L" symbolic-ref HEAD)" = refs/heads/series ]
	[ "$(git -C "$L" rev-parse base)" = "$(sed -n 's/^BASE_COMMIT=//p' "$CO/base.pin")" ]
	[ "$(git -C "$L" rev-parse one)" = "$(git -C "$L" rev-parse base)" ]
	[ "$(git -C "$CO/build/linux-base" rev-parse HEAD)" = "$(git -C "$L" rev-parse base)" ]
	# What the kernel's own .gitignore hides is part of the base too.
	git -C "$L" cat-file -e base:mm/blob.o
	[ -z "$(git -C "$L" status --porcelain)" ]
}

@test "tree: an import that is not the pinned one is refused" {
	sed -i 's/^BASE_TREE=.*/BASE_TREE=0000/' "$CO/base.pin"
	run make_tree
	[ "$status" = 1 ]
	[[ $output = *"not those of base.pin"* ]]
	[ ! -e "$L" ]
}

@test "tree: ids do not depend on the person's git configuration, umask or hooks" {
	make_tree; edit 3 first; export_patches
	git -C "$L" rev-parse base one series > "$BATS_TEST_TMPDIR/ids"
	rm -rf "$CO/build"
	mkdir -p "$BATS_TEST_TMPDIR/hooks"
	printf '#!/bin/sh\nexit 1\n' > "$BATS_TEST_TMPDIR/hooks/pre-applypatch"
	chmod +x "$BATS_TEST_TMPDIR/hooks/pre-applypatch"
	git config --global user.name Other
	git config --global core.autocrlf true
	git config --global am.threeWay true
	git config --global commit.gpgSign true
	git config --global core.hooksPath "$BATS_TEST_TMPDIR/hooks"
	git config --global i18n.commitEncoding ISO-8859-1
	git config --global format.signOff true
	(umask 077; TZ=Asia/Tokyo make_tree)
	git -C "$L" rev-parse base one series | diff "$BATS_TEST_TMPDIR/ids" -
	[ "$(git -C "$L" log -1 --format=%an)" = Dev ]
}

@test "tree: nothing to do is said and leaves all as it was" {
	make_tree
	git -C "$L" for-each-ref > "$BATS_TEST_TMPDIR/refs"
	touch -d 2020-01-01 "$L/mm/vmstat.c"
	run make_tree
	[ "$status" = 0 ]
	[[ $output = *"is current: 0 commits"* && $output != *unpacking* && $output != *applying* ]]
	[ "$(stat -c %Y "$L/mm/vmstat.c")" = "$(date -d 2020-01-01 +%s)" ]
	git -C "$L" for-each-ref | diff "$BATS_TEST_TMPDIR/refs" -
}

@test "tree: an interrupted import is made anew" {
	mkdir -p "$L/mm" "$CO/build/linux.new"
	echo left over > "$L/mm/x"
	run make_tree
	[ "$status" = 0 ]
	[[ $output = *"not a complete tree"* ]]
	[ ! -e "$L/mm/x" ]
	[ -e "$CO/build/linux.broken/mm/x" ]
	[ ! -e "$CO/build/linux.new" ]
}

@test "tree: a damaged base worktree is made anew" {
	make_tree
	rm "$CO/build/linux-base/.git"
	make_tree
	[ "$(git -C "$CO/build/linux-base" rev-parse HEAD)" = "$(git -C "$L" rev-parse base)" ]
}

@test "tree: changed patches are noticed, and only files that differ are touched" {
	make_tree; edit 3 first; export_patches
	sed -i 's/first/1st/' "$CO/patches/one/0001-first.patch"
	touch -d 2020-01-01 "$L/Makefile"
	make_tree
	[ "$(git -C "$L" log -1 --format=%s series)" = 1st ]
	grep -q '3 1st' "$L/mm/vmstat.c"
	[ "$(git -C "$L" rev-parse one)" = "$(git -C "$L" rev-parse series)" ]
	[ "$(stat -c %Y "$L/Makefile")" = "$(date -d 2020-01-01 +%s)" ]
}

@test "tree: patches changed under commits not exported: stops, loses nothing, and the way out works" {
	make_tree; edit 3 first; export_patches
	edit 30 mine
	mine=$(git -C "$L" rev-parse HEAD)
	sed -i 's/first/1st/' "$CO/patches/one/0001-first.patch"
	run make_tree
	[ "$status" = 1 ]
	[[ $output = *"never exported"* && $output = *"way out"* ]]
	[ "$(git -C "$L" rev-parse series)" = "$mine" ]
	run export_patches
	[ "$status" = 1 ]
	[[ $output = *"would undo that change"* ]]
	old=$(git -C "$L" rev-parse refs/numa-series/tip)
	[[ $output = *"make tree"* ]]
	git -C "$L" branch my-work
	git -C "$L" reset --quiet --hard refs/numa-series/tip
	make_tree
	git -C "$L" rebase --quiet --onto series "$old" my-work
	git -C "$L" checkout --quiet -B series
	export_patches
	[ "$(git -C "$L" log -2 --format=%s | xargs)" = "mine 1st" ]
}

@test "tree: patches changed under changes not committed: stops" {
	make_tree; edit 3 first; export_patches
	echo more >> "$L/mm/vmstat.c"
	sed -i 's/first/1st/' "$CO/patches/one/0001-first.patch"
	run make_tree
	[ "$status" = 1 ]
	[[ $output = *"not committed"* ]]
	grep -q more "$L/mm/vmstat.c"
}

@test "tree: a patch that needs fuzz is refused, and build/linux stays as it was" {
	make_tree; edit 3 first; export_patches
	before=$(git -C "$L" rev-parse series)
	sed -i 's/^ 5$/ five/' "$CO/patches/one/0001-first.patch"
	run make_tree
	[ "$status" = 1 ]
	[[ $output = *"topic one does not apply"* ]]
	[ "$(git -C "$L" rev-parse series)" = "$before" ]
	[ -z "$(git -C "$L" status --porcelain)" ]
	[ ! -e "$CO/build/linux-am" ]
}

@test "tree: a changed base keeps the repository and moves the series on it" {
	make_tree; edit 3 first; export_patches
	git -C "$L" branch aside
	fake_deb 7.3.5-1 "$BATS_TEST_TMPDIR/new.deb" newer
	pin "$BATS_TEST_TMPDIR/new.deb"
	mv "$BATS_TEST_TMPDIR/new.deb" "$CACHE/$(sed -n 's/^BASE_SHA256=//p' "$CO/base.pin").deb"
	make_tree
	[ "$(cat "$L/mm/blob.o" "$CO/build/linux-base/mm/blob.o")" = $'newer\nnewer' ]
	[ "$(git -C "$L" log -1 --format=%s base)" = "Debian linux-source-7.3 7.3.5-1" ]
	[ "$(git -C "$L" rev-list --count base..series)" = 1 ]
	git -C "$L" rev-parse aside
}

@test "tree: KERNEL_SRC takes a clone at v7.3, and later commands stay with it" {
	src=$BATS_TEST_TMPDIR/clone
	fake_source "$src" upstream
	git init --quiet "$src"; git -C "$src" add -Af; git -C "$src" commit --quiet -m 'Linux 7.3'; git -C "$src" tag v7.3
	echo later > "$src/mm/blob.o"; git -C "$src" commit --quiet -am later
	KERNEL_SRC=$src run make_tree
	[ "$status" = 0 ]
	[[ $output = *"using v7.3 of"* && $output = *"not the pinned one"* ]]
	[ "$(git -C "$L" rev-parse 'base^{tree}')" = "$(git -C "$src" rev-parse 'v7.3^{tree}')" ]
	[ "$(cat "$L/mm/blob.o")" = upstream ]
	run make_tree
	[[ $output = *"Linux v7.3"* && $output != *unpacking* ]]
}

@test "tree: KERNEL_SRC takes a tarball; another version is refused" {
	fake_source "$BATS_TEST_TMPDIR/linux-7.3.9"
	tar -czf "$BATS_TEST_TMPDIR/linux-7.3.9.tar.gz" -C "$BATS_TEST_TMPDIR" linux-7.3.9
	KERNEL_SRC=$BATS_TEST_TMPDIR/linux-7.3.9.tar.gz make_tree
	[ "$(git -C "$L" log -1 --format=%s base)" = "Linux linux-7.3.9.tar.gz" ]
	rm -rf "$CO/build"
	sed -i 's/PATCHLEVEL = 3/PATCHLEVEL = 2/' "$BATS_TEST_TMPDIR/linux-7.3.9/Makefile"
	tar -czf "$BATS_TEST_TMPDIR/linux-7.2.tar.gz" -C "$BATS_TEST_TMPDIR" linux-7.3.9
	KERNEL_SRC=$BATS_TEST_TMPDIR/linux-7.2.tar.gz run make_tree
	[ "$status" = 1 ]
	[[ $output = *"is not Linux 7.3"* ]]
}

@test "export: gives back the same commits, twice the same files, and a current tree" {
	make_tree
	edit 3 first; edit 30 second
	export_patches
	[ "$(cd "$CO/patches" && echo one/*)" = "one/0001-first.patch one/0002-second.patch" ]
	patch_files > "$BATS_TEST_TMPDIR/files"
	git -C "$L" for-each-ref > "$BATS_TEST_TMPDIR/refs"
	export_patches
	patch_files | diff "$BATS_TEST_TMPDIR/files" -
	run make_tree
	[[ $output = *"is current: 2 commits"* && $output != *applying* && $output != *"not exported"* ]]
	git -C "$L" for-each-ref | diff "$BATS_TEST_TMPDIR/refs" -
	# A clone that makes the tree from these patches has the same ids.
	ids=$(git -C "$L" rev-parse base one series)
	rm -rf "$CO/build"
	make_tree
	[ "$(git -C "$L" rev-parse base one series)" = "$ids" ]
}

@test "export: patches are From: the author, without sign-off, number or git version" {
	make_tree; edit 3 first; export_patches
	p=$CO/patches/one/0001-first.patch
	grep -qx 'From: Dev <dev@example.org>' "$p"
	grep -qx 'Subject: \[PATCH\] first' "$p"
	grep -qx 'From 0\{40\} Mon Sep 17 00:00:00 2001' "$p"
	run grep -E "^Signed-off-by|$(git --version | cut -d' ' -f3)" "$p"
	[ "$status" = 1 ]
}

@test "export: an amended patch, a dropped patch, and the cover letter that stays" {
	make_tree; edit 3 first; edit 20 second; edit 35 third; export_patches
	echo hand written > "$CO/patches/one/0000-cover-letter.patch"
	run make_tree
	[[ $output != *applying* ]]
	git -C "$L" rebase --quiet --onto one~2 one~1 series
	sed -i '35s/$/ amended/' "$L/mm/vmstat.c"
	git -C "$L" commit --quiet --all --amend --no-edit
	export_patches
	[ "$(cd "$CO/patches" && echo one/*)" = "one/0000-cover-letter.patch one/0001-first.patch one/0002-third.patch" ]
	[ "$(cat "$CO/patches/one/0000-cover-letter.patch")" = "hand written" ]
	grep -q amended "$CO/patches/one/0002-third.patch"
}

@test "export: what mail would lose is refused, and patches/ stays as it was" {
	make_tree
	sed -i '3s/$/ x/' "$L/mm/vmstat.c"
	git -C "$L" commit --quiet --all -m first -m $'above\n---\nbelow'
	run export_patches
	[ "$status" = 1 ]
	[[ $output = *"do not give back its commits"* && $output = *"< below"* ]]
	[ -z "$(patch_files)" ]
}

@test "export: changes not committed, a rebase under way, a merge: refused; an empty commit too" {
	make_tree; edit 3 first
	echo more >> "$L/mm/vmstat.c"
	run export_patches
	[ "$status" = 1 ]
	[[ $output = *"not committed"* ]]
	git -C "$L" checkout --quiet mm/vmstat.c
	edit 4 second
	run git -C "$L" -c sequence.editor='sed -i 1s/pick/edit/' rebase -i base
	run export_patches
	[ "$status" = 1 ]
	[[ $output = *"middle of a rebase"* ]]
	git -C "$L" rebase --abort
	git -C "$L" commit --quiet --allow-empty -m empty
	run export_patches
	[ "$status" = 1 ]
	[[ $output = *"is it empty"* ]]
	git -C "$L" reset --quiet --hard HEAD~1
	git -C "$L" checkout --quiet -b side base; echo s > "$L/side"; git -C "$L" add side; git -C "$L" commit --quiet -m side
	git -C "$L" checkout --quiet series; git -C "$L" merge --quiet --no-edit side
	run export_patches
	[ "$status" = 1 ]
	[[ $output = *merges* ]]
	[ -z "$(patch_files)" ]
}

# Topics one and two, with two patches each.
two_topics() {
	printf 'one\n# a remark\ntwo\n' > "$CO/patches/series"
	make_tree
	edit 3 one-a; edit 10 one-b; edit 20 two-a; edit 30 two-b
	TIPS="one=series~2" export_patches
}
layout() { (cd "$CO/patches" && echo */*.patch); }

@test "topics: each has its folder, and a tag at its tip" {
	two_topics
	[ "$(layout)" = "one/0001-one-a.patch one/0002-one-b.patch two/0001-two-a.patch two/0002-two-b.patch" ]
	[ "$(git -C "$L" log -1 --format=%s one)" = one-b ]
	[ "$(git -C "$L" log -1 --format=%s two)" = two-b ]
	files=$(patch_files)
	export_patches
	[ "$(patch_files)" = "$files" ]
}

@test "topics: new commits inside a topic and on top find their place after a rebase" {
	two_topics
	edit 36 two-c
	git -C "$L" checkout --quiet --detach one~1; edit 7 one-ab
	git -C "$L" rebase --quiet --onto HEAD one~1 series
	export_patches
	[ "$(layout)" = "one/0001-one-a.patch one/0002-one-ab.patch one/0003-one-b.patch two/0001-two-a.patch two/0002-two-b.patch two/0003-two-c.patch" ]
	[ "$(git -C "$L" log -1 --format=%s one)" = one-b ]
}

@test "topics: a new commit between two topics is asked about, and TIPS answers" {
	two_topics
	git -C "$L" checkout --quiet --detach one; edit 15 between
	git -C "$L" rebase --quiet --onto HEAD one series
	files=$(patch_files)
	run export_patches
	[ "$status" = 1 ]
	[[ $output = *'does "between" belong to topic one or to a later one?'* ]]
	[ "$(patch_files)" = "$files" ]
	tip=$(sed -n 's/.*such as \([0-9a-f]*\) to take it in.*/\1/p' <<<"$output")
	TIPS="one=$tip" export_patches
	[ "$(layout)" = "one/0001-one-a.patch one/0002-one-b.patch one/0003-between.patch two/0001-two-a.patch two/0002-two-b.patch" ]
	# Once exported it has its place.
	export_patches
}

@test "topics: out of order is refused" {
	two_topics
	git -C "$L" checkout --quiet --detach base
	git -C "$L" cherry-pick series~1 series~3 series~2 series >/dev/null
	git -C "$L" checkout --quiet -B series
	run export_patches
	[ "$status" = 1 ]
	[[ $output = *"stands above a later topic's"* ]]
}

@test "topics: one taken out of patches/series takes its tag with it" {
	two_topics
	echo one > "$CO/patches/series"
	make_tree
	run -1 git -C "$L" rev-parse --quiet --verify refs/tags/two
	[ "$(git -C "$L" log -1 --format=%s series)" = one-b ]
}
