# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Other releases of Debian, from the archive that this machine's apt is set up for. Sourced, with $suites_dir a directory for their lists.

: "${suites_dir:?}"

# apt with separate lists for one suite, otherwise with the machine's configuration
apt_in() { # apt_in SUITE PROGRAM ARGS...
	suite=$1 program=$2
	shift 2
	"$program" -qq -o Dir::Etc::SourceList="$suites_dir/apt/$suite/sources.list" -o Dir::Etc::SourceParts=- -o Dir::Cache="$suites_dir/apt/$suite/cache" \
		-o Dir::State::Lists="$suites_dir/apt/$suite/lists" -o APT::Sandbox::User=root -o APT::Get::List-Cleanup=0 "$@"
}

# The source from which the machine gets this kind of suite
source_of() { # source_of SUITE
	case "$1" in
	*-security) kind='-security$' ;;
	*) kind='^[^-]*$' ;;
	esac
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' |
		awk -v kind="$kind" '$1 ~ kind { print $2; exit }'
}

update() { # update SUITE: fails where the archive does not serve it
	place=$(source_of "$1")
	[ -n "$place" ] || return 1
	mkdir -p "$suites_dir/apt/$1/lists/partial" "$suites_dir/apt/$1/cache/archives/partial"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $place $1 main" >"$suites_dir/apt/$1/sources.list"
	apt_in "$1" apt-get update >/dev/null 2>&1
}
