package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

// ConnectError is a cluster that cannot be reached or does not let us in. Its text is one line and holds no secret.
type ConnectError struct {
	Brokers []string
	Err     error
}

func (e *ConnectError) Error() string {
	return "Kafka at " + strings.Join(e.Brokers, ",") + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// MissingTopicError is a topic that does not exist.
type MissingTopicError struct{ Topic string }

func (e *MissingTopicError) Error() string { return fmt.Sprintf("topic %q does not exist", e.Topic) }

// GapError is an offset that the log does not hold: retention removed it (Wanted < Start), or the log was cut off
// (Wanted > End). Going on at Start would lose [Wanted, Start).
type GapError struct {
	job.Partition
	Wanted, Start, End int64
}

func (e *GapError) Error() string {
	if e.Wanted > e.End {
		return fmt.Sprintf("%s: offset %d is beyond the end of the log, which holds [%d,%d)", e.Partition, e.Wanted, e.Start, e.End)
	}
	return fmt.Sprintf("%s: offsets [%d,%d) are gone, the log holds [%d,%d)", e.Partition, e.Wanted, e.Start, e.Start, e.End)
}

// RecreatedError is a topic that was deleted and made again under the same name: offsets of the old one mean nothing.
type RecreatedError struct {
	job.Partition
	Now job.TopicID
}

func (e *RecreatedError) Error() string {
	return fmt.Sprintf("%s: topic was deleted and made again (its id was %s and is now %s)", e.Partition, e.TopicID, e.Now)
}

// TooLargeError is a record batch that this client can never take in. Size is 0 when only the limit is known.
type TooLargeError struct {
	job.Partition
	Offset      int64
	Size, Limit int64
}

func (e *TooLargeError) Error() string {
	size := "more"
	if e.Size > 0 {
		size = fmt.Sprintf("%d bytes, more", e.Size)
	}
	return fmt.Sprintf("%s: the record batch at offset %d has %s than the client's limit of %d bytes", e.Partition, e.Offset, size, e.Limit)
}

// Final says whether err of a Fetched ends the partition's reading until somebody acts.
func Final(err error) bool {
	var (
		gap       *GapError
		recreated *RecreatedError
		missing   *MissingTopicError
		large     *TooLargeError
	)
	return errors.As(err, &gap) || errors.As(err, &recreated) || errors.As(err, &missing) || errors.As(err, &large)
}

var (
	errNoBrokers = errors.New("no Kafka brokers are set")
	errNoLeader  = errors.New("no leader")
	errClosed    = errors.New("the fetcher is closed")
)

// connectError makes a ConnectError of whatever a client reports when it could not talk to a broker.
func connectError(brokers []string, err error) *ConnectError {
	return &ConnectError{Brokers: brokers, Err: cause(err)}
}

// cause keeps the part of a client's error that a person can act on.
func cause(err error) error {
	var (
		dns *net.DNSError
		op  *net.OpError
		eof *kgo.ErrFirstReadEOF
	)
	switch {
	case errors.As(err, &dns):
		return fmt.Errorf("host %s is not known", dns.Name)
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer in time")
	case errors.As(err, &eof):
		return errors.New("the connection was closed at once; does the broker want TLS or SASL?")
	case errors.As(err, &op) && op.Timeout():
		return errors.New("no answer in time")
	case errors.As(err, &op) && op.Op == "dial":
		return op.Err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return errors.New("the connection was lost")
	}
	return err
}

// answered says whether a broker answered, if with an error.
func answered(err error) bool {
	var k *kerr.Error
	return errors.As(err, &k)
}
