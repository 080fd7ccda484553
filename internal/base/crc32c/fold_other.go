//go:build !amd64

package crc32c

const (
	foldMin = 0
	hasCRC  = false
)

func foldable(int) int { return 0 }

func fold(uint32, []byte) uint32 { panic("crc32c: fold is for amd64") }

func short(uint32, []byte) uint32 { panic("crc32c: short is for amd64") }
