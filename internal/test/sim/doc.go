// Package sim is a deterministic world: nodes on a switch, links that lose,
// double, delay and corrupt frames, and ranks that run as coroutines, all in
// virtual time. The same seed gives the same run, byte for byte; TraceHash
// proves it. Production code runs in it unchanged: a [Port] is a fabric.Port,
// a [Task] is a mono.Clock and a progress.Parker.
//
//	node A                      switch                      node B
//	tasks -> Port -> TX ring =uplink=> [by MAC] =downlink=> RX ring -> Port -> tasks
//	                 never drops               drops when its queue is full
//
// [Streams] are the TCP of a node, without the frames: bytes in order, with the
// delays of the links, and with whatever can happen to a stream at whatever
// byte (see [StreamConfig]).
//
// The rules of time:
//
//   - The world handles events in the order of their virtual time; events at
//     the same time in an order drawn from the seed.
//   - A task has a clock of its own, which runs ahead of the world's only
//     while nothing else is to happen before. Reading the clock costs
//     Config.StepCost, so a rank that spins makes time pass.
//   - Frames that no fault touched arrive in the order in which they were
//     sent on a link.
//
// Bodies of tasks must not start goroutines, read another clock, or lock their
// thread: the world could not order what they do.
//
// A world is for one goroutine; any number of worlds may run side by side.
package sim
