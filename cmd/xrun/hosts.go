package main

import (
	"fmt"
	"io"
	"os"

	"github.com/xwarp/xwarp/internal/job/launch"
)

// hostList reads the hosts from where they are.
func (o *options) hostList(stdin io.Reader) ([]launch.Host, error) {
	switch {
	case o.hosts != "":
		return launch.ParseHosts(o.hosts)
	case o.allocation != "":
		return o.allocated, nil
	}
	var text []byte
	var err error
	if o.hostfile == "-" {
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(o.hostfile)
	}
	if err != nil {
		return nil, &launch.ConfigError{Problem: "host file: " + err.Error()}
	}
	hosts, err := launch.ParseHostfile(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.hostfile, err)
	}
	return hosts, nil
}
