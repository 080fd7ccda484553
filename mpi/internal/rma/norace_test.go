//go:build !race

package rma

const slow = false
