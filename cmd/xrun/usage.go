package main

import (
	_ "embed"

	"github.com/xwarp/xwarp/cmd/internal/cli"
)

// usage returns what --help prints.
func usage() string { return cli.Configured(usageText, 23) }

//go:embed usage.txt
var usageText string
