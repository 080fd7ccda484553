package tidy

// TooLong are the files and functions that are longer than the limits. The
// list only shrinks: a test fails when an entry is no longer needed, or when
// the length that it names is not today's.
var TooLong = map[string]int{}
