// Package ring has the queues that cross from one goroutine or process into
// another. Everything else belongs to one engine and needs none.
//
//   - [MPSC]: many goroutines hand values to one, inside a process.
//   - [SPSC]: one process hands records of bytes to one other, through memory
//     that both map.
//
// Nothing here blocks or locks: full and empty are answers.
package ring
