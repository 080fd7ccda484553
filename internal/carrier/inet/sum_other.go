//go:build !amd64

package inet

func wholeBlocks([]byte) (Sum, int) { return 0, 0 }
