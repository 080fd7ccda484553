// Package bench measures what the layers of xwarp cost. It holds the cases of
// xperf as a table, the two ends that run them, the control connection between
// the ends, and the statistics.
//
// A test has two ends, each a process (or, in tests, a goroutine) with a
// thread of its own that is pinned to a core and spins while it measures. The
// server end echoes or swallows; the client end starts every burst and keeps
// the time. They agree over a TCP connection, see [Pair].
package bench
