#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# scripts/fetch-base, against an archive of our own in a directory, signed by a
# key of our own that stands in for Debian's (in a mount namespace, so only this
# test sees it). APT_CONFIG makes it the machine's archive.
bats_require_minimum_version 1.5.0
load fake-base

setup() {
	# shellcheck disable=SC2086 # one flag or none
	unshare --mount ${UNSHARE_USER:-} true || skip "needs root, or user namespaces"
	setup_checkout
	REPO=$BATS_TEST_TMPDIR/repo
	export GNUPGHOME=$BATS_TEST_TMPDIR/gpg
	mkdir -m 700 "$GNUPGHOME"
	mkdir -p "$REPO" "$BATS_TEST_TMPDIR/machine"/{state/lists/partial,cache/archives/partial,empty}
	gpg --batch --quiet --passphrase '' --quick-generate-key archive ed25519 sign 2>/dev/null
	gpg --batch --export archive > "$BATS_TEST_TMPDIR/archive.gpg"
	echo "deb [signed-by=$BATS_TEST_TMPDIR/archive.gpg] file:$REPO bookworm main" > "$BATS_TEST_TMPDIR/machine/sources.list"
	cat > "$BATS_TEST_TMPDIR/machine/apt.conf" <<-CONF
	Dir::State "$BATS_TEST_TMPDIR/machine/state";
	Dir::Cache "$BATS_TEST_TMPDIR/machine/cache";
	Dir::Etc::sourcelist "$BATS_TEST_TMPDIR/machine/sources.list";
	Dir::Etc::sourceparts "$BATS_TEST_TMPDIR/machine/empty";
	APT::Sandbox::User "root";
	APT::Update::Post-Invoke { "touch $BATS_TEST_TMPDIR/hook-ran"; };
	CONF
	# docker-clean and its like come after APT_CONFIG; an empty folder keeps the
	# machine's own settings out of the test.
	echo "Dir::Etc::parts \"$BATS_TEST_TMPDIR/machine/empty\";" >> "$BATS_TEST_TMPDIR/machine/apt.conf"
	export APT_CONFIG=$BATS_TEST_TMPDIR/machine/apt.conf
	suite bookworm
	fake_deb 7.3.4-1~bpo13+1 "$BATS_TEST_TMPDIR/base.deb"
	pin "$BATS_TEST_TMPDIR/base.deb"
	DEB=$CACHE/$(sed -n 's/^BASE_SHA256=//p' "$CO/base.pin").deb
}

# suite NAME [DEB]: publish a suite with that package in it, and with another
# (apt does not list a suite that is empty).
suite() {
	local dists=$REPO/dists/$1 packages

	packages=$dists/main/binary-$(dpkg --print-architecture)/Packages
	mkdir -p "$packages" "$REPO/pool"
	rmdir "$packages"
	printf '%s\n' 'Package: other' 'Version: 1' 'Architecture: all' 'Filename: other' 'Size: 1' \
		"SHA256: $(sha256sum < /dev/null | cut -d' ' -f1)" '' > "$packages"
	if [ $# -gt 1 ]; then
		cp "$2" "$REPO/pool/"
		{
			dpkg-deb --field "$2"
			echo "Filename: pool/$(basename "$2")"
			echo "Size: $(stat -c %s "$2")"
			echo "SHA256: $(sha256sum < "$2" | cut -d' ' -f1)"
		} >> "$packages"
	fi
	cat > "$dists/Release" <<-RELEASE
	Origin: Debian
	Label: Debian
	Suite: $1
	Codename: $1
	Date: $(LC_ALL=C date -Ru)
	Architectures: $(dpkg --print-architecture)
	Components: main
	SHA256:
	 $(sha256sum < "$packages" | cut -d' ' -f1) $(stat -c %s "$packages") ${packages#"$dists/"}
	RELEASE
	gpg --batch --yes --quiet --local-user archive --clearsign --output "$dists/InRelease" "$dists/Release"
}

# fetch: run it where our key stands in for Debian's.
fetch() {
	# shellcheck disable=SC2016,SC2086 # for the inner shell; one flag or none
	unshare --mount ${UNSHARE_USER:-} bash -c 'mount --bind "$1" "$(realpath /usr/share/keyrings/debian-archive-keyring.gpg)" && exec "$2"' \
		- "$BATS_TEST_TMPDIR/archive.gpg" "$CO/scripts/fetch-base"
}
[ "$(id -u)" = 0 ] || UNSHARE_USER=--map-root-user

@test "fetch: from the machine's archive, whose own apt state stays as it was" {
	suite trixie-backports "$BATS_TEST_TMPDIR/base.deb"
	apt-get update
	rm "$BATS_TEST_TMPDIR/hook-ran"
	find "$BATS_TEST_TMPDIR/machine" -type f -print0 | sort -z | xargs -0 sha256sum > "$BATS_TEST_TMPDIR/state"
	run --separate-stderr fetch
	[ "$status" = 0 ]
	[ "$output" = "$DEB" ]
	cmp "$DEB" "$BATS_TEST_TMPDIR/base.deb"
	find "$BATS_TEST_TMPDIR/machine" -type f -print0 | sort -z | xargs -0 sha256sum | diff "$BATS_TEST_TMPDIR/state" -
	[ ! -e "$BATS_TEST_TMPDIR/hook-ran" ]
	[ "$(ls "$CACHE")" = "$(basename "$DEB")" ]
}

@test "fetch: on a machine that never ran apt-get update" {
	suite trixie-backports "$BATS_TEST_TMPDIR/base.deb"
	run --separate-stderr fetch
	[ "$status" = 0 ]
	[ "$output" = "$DEB" ]
	[ -z "$(find "$BATS_TEST_TMPDIR/machine/state/lists" -type f)" ]
}

@test "fetch: a second time from the cache, without an archive" {
	suite trixie-backports "$BATS_TEST_TMPDIR/base.deb"
	fetch
	rm -r "$REPO"
	run --separate-stderr fetch
	[ "$status" = 0 ]
	[ "$output" = "$DEB" ]
	[ -z "$stderr" ]
}

@test "fetch: a truncated or altered cache is refused, said and fetched again" {
	suite trixie-backports "$BATS_TEST_TMPDIR/base.deb"
	fetch
	for damage in 'truncate -s -1' 'sed -i 1s/arch/ARCH/'; do
		$damage "$DEB"
		run fetch
		[ "$status" = 0 ]
		[[ $output = *"truncated or altered: refused"* ]]
		cmp "$DEB" "$BATS_TEST_TMPDIR/base.deb"
	done
}

@test "fetch: a package altered in the archive is refused" {
	suite trixie-backports "$BATS_TEST_TMPDIR/base.deb"
	printf X | dd conv=notrunc bs=1 seek=200 of="$REPO/pool/base.deb" 2>/dev/null
	run fetch
	[ "$status" = 1 ]
	[[ $output = *"could not fetch"*"way out"* ]]
	[ -z "$(ls "$CACHE")" ]
}

@test "fetch: a well signed package that is not the pinned one is refused" {
	fake_deb 7.3.4-1~bpo13+1 "$BATS_TEST_TMPDIR/base.deb" other
	suite trixie-backports "$BATS_TEST_TMPDIR/base.deb"
	run fetch
	[ "$status" = 1 ]
	[[ $output = *"does not have the pinned SHA-256: refused"* ]]
	[ -z "$(ls "$CACHE")" ]
}

@test "fetch: package lists that Debian's key did not sign are not used" {
	suite trixie-backports "$BATS_TEST_TMPDIR/base.deb"
	apt-get update
	sed -i 's/^Label: Debian/Label: Evil/' "$REPO/dists/trixie-backports/InRelease"
	run fetch
	[ "$status" = 1 ]
	[[ $output = *"not valid"*"no answer from"* || $output = *"invalid"*"no answer from"* ]]
	[ -z "$(ls "$CACHE")" ]
}

@test "fetch: an archive of somebody else is not asked" {
	suite trixie-backports "$BATS_TEST_TMPDIR/base.deb"
	sed -i 's/^Origin: Debian/Origin: Third/' "$REPO/dists/bookworm/Release"
	gpg --batch --yes --quiet --local-user archive --clearsign --output "$REPO/dists/bookworm/InRelease" "$REPO/dists/bookworm/Release"
	run fetch
	[ "$status" = 1 ]
	[[ $output = *"no answer from this machine's Debian archive"*"way out"*KERNEL_SRC* ]]
}

@test "fetch: the pinned version has gone: the newest of any suite, and it is said" {
	fake_deb 7.3.9-1 "$BATS_TEST_TMPDIR/new.deb"
	fake_deb 7.3.10-1 "$BATS_TEST_TMPDIR/newest.deb"
	suite trixie-backports; suite testing "$BATS_TEST_TMPDIR/newest.deb"; suite unstable "$BATS_TEST_TMPDIR/new.deb"
	run fetch
	[ "$status" = 0 ]
	[[ $output = *"7.3.4-1~bpo13+1 has gone"*"using 7.3.10-1 instead"* ]]
	cmp "${lines[-1]}" "$BATS_TEST_TMPDIR/newest.deb"
}

@test "fetch: no 7.3 in any suite: stops with the way out" {
	suite trixie-backports; suite testing; suite unstable
	run fetch
	[ "$status" = 1 ]
	[[ $output = *"no longer has any linux-source-7.3"*"way out"*KERNEL_SRC* ]]
}

@test "fetch: no network and no cache: one line, and the way out" {
	apt-get update
	rm -r "$REPO"
	run fetch
	[ "$status" = 1 ]
	[[ $output = *"no answer from this machine's Debian archive"*"and no cached base kernel"*"way out"*KERNEL_SRC* ]]
}

@test "fetch: KERNEL_SRC that is neither clone nor tarball is refused" {
	KERNEL_SRC=/etc run "$CO/scripts/fetch-base"
	[ "$status" = 1 ]
	[[ $output = *"no git clone"*"way out"* ]]
}
