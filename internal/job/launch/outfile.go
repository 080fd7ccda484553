package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// outputFiles are files that get the output of ranks in place of the terminal.
type outputFiles struct {
	of  [2][]*stream // output and error output, by rank; nil without files
	all []*stream
	err error // of writing
}

// openOutputFiles makes the files of a job whose ranks are on hosts.
func openOutputFiles(c Config, hosts []string) (*outputFiles, error) {
	f := &outputFiles{}
	byName := map[string]*stream{}
	for which, pattern := range [2]string{c.OutFile, c.ErrFile} {
		for rank := range hosts {
			if pattern == "" {
				break
			}
			name := fileName(pattern, rank, len(hosts), hosts[rank])
			if byName[name] == nil {
				file, err := c.createFile(name)
				if err != nil {
					return nil, errors.Join(configErrorf("output of rank %d: %v", rank, err), f.close())
				}
				byName[name] = &stream{w: file, file: file, alone: true}
				f.all = append(f.all, byName[name])
			} else {
				byName[name].alone = false
			}
			f.of[which] = append(f.of[which], byName[name])
		}
	}
	return f, nil
}

// fileName fills in a pattern for a rank of size.
func fileName(pattern string, rank, size int, host string) string {
	wide := fmt.Sprintf("%0*d", len(strconv.Itoa(size-1)), rank)
	return strings.NewReplacer("%r", strconv.Itoa(rank), "%0r", wide, "%h", host, "%%", "%").Replace(pattern)
}

// checkPattern refuses what fileName does not fill in.
func checkPattern(option, pattern string) error {
	rest := strings.NewReplacer("%r", "", "%0r", "", "%h", "", "%%", "").Replace(pattern)
	if _, unknown, found := strings.Cut(rest, "%"); found {
		return configErrorf("%s %.200q: %%%.1s stands for nothing: want %%r or %%0r for the number of the rank, %%h for its host or %%%% for a %%", option, pattern, unknown)
	}
	return nil
}

func (c *Config) createFile(name string) (*os.File, error) {
	if c.MakeDirs {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return nil, err
		}
	}
	return os.Create(name)
}

// failed notes that a stream takes no more, on a full disk for example. The job goes on.
func (f *outputFiles) failed(s *stream, rank int, err error) {
	s.w = io.Discard
	if f.err == nil {
		f.err = fmt.Errorf("output of rank %d: %w", rank, err)
	}
}

// close returns why files, or standard output, do not have what they should.
func (f *outputFiles) close() error {
	for _, s := range f.all {
		if err := s.file.Close(); err != nil && f.err == nil {
			f.err = fmt.Errorf("output of ranks: %w", err)
		}
	}
	return f.err
}
