package archive

import (
	"errors"
	"time"

	"github.com/kappactl/kappactl/internal/kafka"
)

// absentFor is how long a file is asked for that is not there, or whose marker is not.
const absentFor = time.Minute

// absence is since when a file is not there, and when that was seen last.
type absence struct{ since, seen time.Time }

// judge returns what a failure to read a file means: a *DamagedError, which is final, once it has not been there for
// absentFor.
func (s *Shelf) judge(f FileRow, err error, now time.Time) error {
	var marker *MarkerError
	if !Missing(err) && !errors.As(err, &marker) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.absent[shelved(f)]
	if now.Sub(a.seen) > 2*absentFor { // another time
		a.since = now
	}
	a.seen = now
	s.absent[shelved(f)] = a
	if now.Sub(a.since) < absentFor {
		return err
	}
	why := "it is not there"
	if marker != nil {
		why = marker.Error()
	}
	return &DamagedError{Range: f.Range, Location: f.Location, Name: f.Name, Why: why, Err: err}
}

// appeared forgets an absence.
func (s *Shelf) appeared(f FileRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.absent, shelved(f))
}

// Final reports whether an Err of an answer of a Reader ends a partition's reading until a person acts.
func Final(err error) bool {
	var damaged *DamagedError
	return errors.As(err, &damaged) || kafka.Final(err)
}
