#!/bin/sh
# What `make demo` shows. The commands are the same everywhere: where they
# cannot have AF_XDP between two hosts they take kernel sockets, and say so.
set -eu
cd "$(dirname "$0")/.."

run() {
	echo
	echo "\$ $*"
	"$@"
}

# AF_XDP is tried where it will be used: on a host that goes with this command.
try_xdp() {
	./bin/xrun --quiet -n 1 --testbed 2 --fabric udp ./bin/xinfo --check xw0 2>&1
}

if [ "$(id -u)" != 0 ]; then
	echo "demo: kernel sockets on loopback, for AF_XDP and network namespaces need root: sudo make demo"
elif found=$(try_xdp); then
	echo "demo: AF_XDP between two hosts, which are network namespaces on this machine, MTU 9000"
else
	echo "demo: kernel sockets, for AF_XDP does not work here: $(echo "$found" | grep -v '^xrun: rank' | tail -n 1)"
fi

run bin/xperf compare --testbed
run bin/xrun -n 2 --testbed 2 bin/cg --matrix examples/cg/diffusion.mtx
