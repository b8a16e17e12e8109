# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# A checkout of its own for each test, with a base kernel of three files: the
# scripts run as they are, on something small. Loaded by the tests of the tree.

setup_checkout() {
	TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	CO=$BATS_TEST_TMPDIR/checkout
	mkdir -p "$CO/patches"
	cp -r "$TOP/scripts" "$CO/"
	echo one > "$CO/patches/series"
	export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache HOME=$BATS_TEST_TMPDIR
	export GIT_AUTHOR_NAME=Dev GIT_AUTHOR_EMAIL=dev@example.org
	export GIT_COMMITTER_NAME=Dev GIT_COMMITTER_EMAIL=dev@example.org
	unset KERNEL_SRC BUILD_DIR TIPS
	CACHE=$XDG_CACHE_HOME/numa-series
	L=$CO/build/linux
}

# fake_source DIR [TEXT]: a kernel of four files, one of them ignored by its own
# .gitignore, as the real one has.
fake_source() {
	mkdir -p "$1/mm"
	printf 'VERSION = 7\nPATCHLEVEL = 3\n' > "$1/Makefile"
	echo '*.o' > "$1/.gitignore"
	echo "${2:-object}" > "$1/mm/blob.o"
	seq 40 > "$1/mm/vmstat.c"
}

# fake_deb VERSION FILE [TEXT]: linux-source-7.3 of that version.
fake_deb() {
	local dir=$BATS_TEST_TMPDIR/deb

	rm -rf "$dir"
	mkdir -p "$dir/DEBIAN" "$dir/usr/src"
	fake_source "$dir/src/linux-source-7.3" "${3:-}"
	tar -cJf "$dir/usr/src/linux-source-7.3.tar.xz" -C "$dir/src" linux-source-7.3
	rm -r "$dir/src"
	printf '%s\n' 'Package: linux-source-7.3' "Version: $1" 'Architecture: all' \
		'Maintainer: Test <test@example.org>' 'Description: fake' > "$dir/DEBIAN/control"
	dpkg-deb -Znone --build "$dir" "$2" >/dev/null
}

# pin FILE: base.pin names this deb; the ids are those that a right import gives.
pin() {
	local dir=$BATS_TEST_TMPDIR/pin commit

	mkdir "$dir"
	dpkg-deb --fsys-tarfile "$1" | tar -xO ./usr/src/linux-source-7.3.tar.xz | tar -xJ -C "$dir" --strip-components=1
	git init --quiet --object-format=sha1 "$dir"
	git -C "$dir" add --all --force
	commit=$(GIT_AUTHOR_NAME=numa-series GIT_AUTHOR_EMAIL=numa-series@localhost \
		GIT_COMMITTER_NAME=numa-series GIT_COMMITTER_EMAIL=numa-series@localhost \
		GIT_AUTHOR_DATE='2026-11-15T23:30:52+0100' GIT_COMMITTER_DATE='2026-11-15T23:30:52+0100' \
		git -C "$dir" commit-tree "$(git -C "$dir" write-tree)" \
		-m "Debian linux-source-7.3 $(dpkg-deb --field "$1" Version)")
	cat > "$CO/base.pin" <<-PIN
	BASE_PACKAGE=linux-source-7.3
	BASE_VERSION=$(dpkg-deb --field "$1" Version)
	BASE_SUITE=trixie-backports
	BASE_SHA256=$(sha256sum < "$1" | cut -d' ' -f1)
	BASE_TREE=$(git -C "$dir" rev-parse "$commit^{tree}")
	BASE_COMMIT=$commit
	PIN
	rm -rf "$dir"
}

# cached_base: pin a fake base, and have it in the cache already.
cached_base() {
	fake_deb 7.3.4-1~bpo13+1 "$BATS_TEST_TMPDIR/base.deb"
	pin "$BATS_TEST_TMPDIR/base.deb"
	mkdir -p "$CACHE"
	DEB=$CACHE/$(sha256sum < "$BATS_TEST_TMPDIR/base.deb" | cut -d' ' -f1).deb
	mv "$BATS_TEST_TMPDIR/base.deb" "$DEB"
}

# edit LINE SUBJECT: change that line of mm/vmstat.c and commit.
edit() {
	sed -i "$1s/\$/ $2/" "$L/mm/vmstat.c"
	git -C "$L" commit --quiet --all --message "$2" --message "Why $2."
}

make_tree() { "$CO/scripts/make-tree"; }
export_patches() { "$CO/scripts/export-patches"; }
patch_files() { (cd "$CO/patches" && find . -name '*.patch' | sort | xargs -r sha256sum); }
