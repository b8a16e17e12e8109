# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What make-tree and export-patches share: git that behaves the same on every
# machine, the list of topics, and applying the patches. Source it after lib.sh.
#
# What build/linux was made from is kept in refs, so that it changes in one
# transaction with the tags and the branch:
#   refs/numa-series/base     the base commit
#   refs/numa-series/tip      branch series, when it last equalled patches/
#   refs/numa-series/source   a blob: where the base came from
#   refs/numa-series/patches  a blob: patches_id of what was applied

# shellcheck disable=SC2034 # used by the scripts that source this file
LINUX=$BUILD/linux
PATCHES=$ROOT/patches

# Neither the person's git configuration nor a calling hook's environment may
# change an id or a patch file. safe.directory: the tree is ours even when sudo
# or a container changed who we are.
# shellcheck disable=SC2046 # a list of names
unset $(git rev-parse --local-env-vars)
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_COUNT=5
export GIT_CONFIG_KEY_0=safe.directory   GIT_CONFIG_VALUE_0='*'
export GIT_CONFIG_KEY_1=core.hooksPath   GIT_CONFIG_VALUE_1=/dev/null
export GIT_CONFIG_KEY_2=commit.gpgSign   GIT_CONFIG_VALUE_2=false
export GIT_CONFIG_KEY_3=core.autocrlf    GIT_CONFIG_VALUE_3=false
export GIT_CONFIG_KEY_4=advice.detachedHead GIT_CONFIG_VALUE_4=false
export GIT_AUTHOR_NAME=numa-series GIT_AUTHOR_EMAIL=numa-series@localhost
export GIT_COMMITTER_NAME=numa-series GIT_COMMITTER_EMAIL=numa-series@localhost
umask 022

lgit() { git -C "$LINUX" "$@"; }
# rev NAME: the commit or blob that NAME stands for; fails when there is none.
rev() { lgit rev-parse --quiet --verify "$1"; }

# history FROM TO: all that a patch carries of each commit: every field but the
# committer, which apply_series makes the same for everybody.
history() { lgit log --date=raw --format='%T %an <%ae> %ad%n%B' "$1..$2"; }

topics() { sed 's/#.*//' "$1/series" | awk 'NF { print $1 }'; }

# topic_patches DIR TOPIC: the topic's patch files in order, without the cover
# letter; nothing for a topic that is still empty.
topic_patches() {
	[ -d "$1/$2" ] || return 0
	find "$1/$2" -maxdepth 1 -name '[0-9]*.patch' ! -name '0000-*' | sort
}

# patches_id DIR: changes when what would be applied changes.
patches_id() {
	local topic

	for topic in $(topics "$1"); do
		echo "topic $topic"
		topic_patches "$1" "$topic" | xargs -r -d '\n' sha256sum | cut -d' ' -f1
	done | sha256sum | cut -d' ' -f1
}

# apply_series DIR BASE: apply the topics of DIR on BASE and print "TOPIC TIP"
# for each. Works in a worktree without files (git am checks out those that it
# needs), so that a failure leaves build/linux as it was, and success touches
# only files that differ: make rebuilds no more than it must.
apply_series() (
	dir=$1 base=$2 work=$BUILD/linux-am

	trap 'lgit worktree remove --force "$work" 2>/dev/null || rm -rf "$work"' EXIT
	rm -rf "$work"
	lgit worktree prune
	lgit worktree add --quiet --no-checkout --detach "$work" "$base" >&2
	git -C "$work" read-tree "$base"
	for topic in $(topics "$dir"); do
		mapfile -t files < <(topic_patches "$dir" "$topic")
		if [ ${#files[@]} -gt 0 ]; then
			say "applying $topic: ${#files[@]} patches"
			git -C "$work" am --quiet --no-3way --keep-non-patch \
				--committer-date-is-author-date "${files[@]}" >&2 ||
				die "topic $topic does not apply to $(git -C "$work" log -1 --format='"%s"')" \
				    "see the hunk that failed above; nothing in $LINUX was changed"
		fi
		echo "$topic $(git -C "$work" rev-parse HEAD)"
	done
)

# set_series TIPS BASE SOURCE PATCHES-ID: make TIPS ("TOPIC TIP" lines) the state
# of build/linux. The files come first, then all refs at once.
set_series() {
	local tips=$1 base=$2 tip topic old source patches

	tip=$(awk -v base="$base" 'END { print NR ? $2 : base }' <<<"$tips")
	source=$(lgit hash-object -w --stdin <<<"$3")
	patches=$(lgit hash-object -w --stdin <<<"$4")
	lgit checkout --quiet --detach "$tip"
	{
		echo start
		# The tags of topics that are gone from patches/series go too.
		lgit for-each-ref --format='%(refname:lstrip=2)' refs/tags |
			while read -r old; do
				rev "refs/numa-series/topic/$old" >/dev/null || continue
				grep -q "^$old " <<<"$tips" && continue
				printf 'delete %s\n' "refs/tags/$old" "refs/numa-series/topic/$old"
			done
		while read -r topic tip_of; do
			[ -n "$topic" ] || continue
			echo "update refs/tags/$topic $tip_of"
			echo "update refs/numa-series/topic/$topic $tip_of"
		done <<<"$tips"
		echo "update refs/tags/base $base"
		echo "update refs/heads/series $tip"
		echo "update refs/numa-series/base $base"
		echo "update refs/numa-series/tip $tip"
		echo "update refs/numa-series/source $source"
		echo "update refs/numa-series/patches $patches"
		echo commit
	} | lgit update-ref --stdin >/dev/null
	lgit symbolic-ref HEAD refs/heads/series
}

# need_settled WHAT: stop unless build/linux is on branch series with nothing in
# progress and nothing uncommitted, so that WHAT loses nobody's work.
need_settled() {
	local gitdir=$LINUX/.git head

	head=$(lgit symbolic-ref --quiet HEAD || true)
	if [ -d "$gitdir/rebase-merge" ] || [ -d "$gitdir/rebase-apply" ]; then
		die "$LINUX is in the middle of a rebase or am; cannot $1" \
		    "git -C $LINUX rebase --continue (or --abort), then again"
	fi
	[ "$head" = refs/heads/series ] ||
		die "$LINUX is on ${head:-a detached commit}, not on branch series; cannot $1" \
		    "git -C $LINUX checkout series, then again"
	[ -z "$(lgit status --porcelain --untracked-files=no)" ] ||
		die "$LINUX has changes that are not committed; cannot $1" \
		    "commit them, or git -C $LINUX stash, then again"
}
