// Package conform says in tests what the contracts of internal/carrier/fabric say in
// words, so that every carrier is held to the same ones. It also has the
// simplest carrier there is, a [Pipe] in memory.
//
// It is for tests only.
package conform
