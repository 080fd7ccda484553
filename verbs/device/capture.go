package device

import (
	"errors"
	"fmt"
	"os"

	"github.com/xwarp/xwarp/internal/carrier/capture"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// createCapture makes the file only once there is something to capture: a
// device that cannot be opened leaves an older capture alone.
func (s *Spec) createCapture() (*os.File, capture.Config, error) {
	f, err := os.Create(s.Capture)
	if err != nil {
		err = fmt.Errorf("device: capture: %w", err)
	}
	return f, capture.Config{Clock: s.Clock, Name: s.Device}, err
}

// capturePort puts a capture over port if one is asked for. After an error the
// port is closed.
func (s *Spec) capturePort(port fabric.Port) (fabric.Port, error) {
	if s.Capture == "" {
		return port, nil
	}
	f, c, err := s.createCapture()
	if err != nil {
		return nil, errors.Join(err, port.Close())
	}
	return capture.NewPort(port, f, c), nil
}

// captureDatagram puts a capture over dg if one is asked for. After an error
// the carrier is closed.
func (s *Spec) captureDatagram(dg fabric.Datagram) (fabric.Datagram, error) {
	if s.Capture == "" {
		return dg, nil
	}
	f, c, err := s.createCapture()
	if err != nil {
		return nil, errors.Join(err, dg.Close())
	}
	return capture.NewDatagram(dg, f, c), nil
}
