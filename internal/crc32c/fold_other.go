//go:build !amd64

package crc32c

func foldable(int) int { return 0 }

func fold(uint32, []byte) uint32 { panic("crc32c: fold is for amd64") }
