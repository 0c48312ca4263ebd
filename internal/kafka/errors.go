package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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

// Cure is what to look at, in a few words.
func (e *ConnectError) Cure() string {
	var login *LoginError
	var trust *TLSError
	switch {
	case errors.As(e.Err, &login):
		return "check kafka.sasl (user, mechanism and the password's source) in the settings, or KAPPACTL_KAFKA_SASL_…"
	case errors.As(e.Err, &trust):
		return "check kafka.tls (ca_file, cert_file, key_file, server_name) in the settings, or KAPPACTL_KAFKA_TLS_…"
	}
	return "check --brokers, KAPPACTL_BROKERS or the context in the config file"
}

// LoginError is a user that the brokers do not let in. Trying again does not help until a person has acted.
type LoginError struct {
	User, Mechanism string
	Err             error
}

func (e *LoginError) Error() string {
	if e.Mechanism == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("login of user %q by %s: %s", e.User, e.Mechanism, e.Err)
}

// Unwrap gives the cause.
func (e *LoginError) Unwrap() error { return e.Err }

// TLSError is a certificate, ours or the broker's, that the other side does not accept, or only one side that speaks TLS.
// Trying again does not help until a person has acted.
type TLSError struct{ Err error }

func (e *TLSError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *TLSError) Unwrap() error { return e.Err }

// Refused says whether a person has to act before a broker and this client talk: wrong password, wrong certificate.
func Refused(err error) bool {
	var login *LoginError
	var trust *TLSError
	return errors.As(err, &login) || errors.As(err, &trust)
}

// MissingTopicError is a topic that does not exist.
type MissingTopicError struct{ Topic string }

func (e *MissingTopicError) Error() string { return fmt.Sprintf("topic %q does not exist", e.Topic) }

// GapError is an offset that the log does not hold: retention removed it (Wanted < Start), or the log was cut off
// (Wanted > End). Going on at Start would lose [Wanted, Start).
type GapError struct {
	job.Partition
	Wanted, Start, End int64
	// Cut says that the log held [End, Wanted) under leader epoch Epoch and was cut off since; by now there may be other records
	// in it. Start is not known then.
	Cut   bool
	Epoch int32
}

func (e *GapError) Error() string {
	if e.Cut {
		return fmt.Sprintf("%s: the log was cut off at offset %d after a change of leader: offsets [%d,%d), as they stood under leader epoch %d, are lost, and others are written there",
			e.Partition, e.End, e.End, e.Wanted, e.Epoch)
	}
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
	if e.TopicID == nameID(e.Topic) {
		return fmt.Sprintf("%s: the brokers give the topic an id (%s) since they were upgraded, and gave none before: it cannot be told whether it is the same topic", e.Partition, e.Now)
	}
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

	errWrongPassword = errors.New("wrong user or password")
)

// connectError makes a ConnectError of whatever a client reports when it could not talk to a broker.
func connectError(brokers []string, err error) *ConnectError {
	return &ConnectError{Brokers: brokers, Err: cause(err)}
}

// explainLogin gives a broker's refusal of the client's user, or of its certificate, a type of its own, and tells the
// client's Login of it.
func explainLogin(cl *kgo.Client, err error) error {
	login := loginOf(cl)
	switch {
	case err == nil || Refused(err):
		return err
	case login != nil && errors.Is(err, kerr.SaslAuthenticationFailed):
		login.noteRefused()
		return login.wrong()
	case login != nil && errors.Is(err, kerr.UnsupportedSaslMechanism):
		return &LoginError{User: login.user, Mechanism: login.mechanism, Err: errors.New("the broker does not offer this mechanism to this listener")}
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.IllegalSaslState):
		return &LoginError{Err: errors.New("the broker wants a login")}
	}
	return explainTLS(err)
}

// explainTLS makes a TLSError of what the handshake says, in words for people.
func explainTLS(err error) error {
	var (
		unverified *tls.CertificateVerificationError
		host       x509.HostnameError
		alert      tls.AlertError
		header     tls.RecordHeaderError
		op         *net.OpError
	)
	switch {
	case errors.As(err, &host):
		return &TLSError{Err: fmt.Errorf("the broker's certificate is not for this address: %w", host)}
	case errors.As(err, &unverified):
		return &TLSError{Err: fmt.Errorf("the broker's certificate is not trusted: %w", unverified.Err)}
	case errors.As(err, &alert), errors.As(err, &op) && op.Op == "remote error":
		return &TLSError{Err: fmt.Errorf("the broker ended the TLS handshake, as it does when it wants a client certificate: %w", err)}
	case errors.As(err, &header):
		return &TLSError{Err: errors.New("the broker does not speak TLS at this address")}
	case strings.Contains(err.Error(), "plaintext connection speaking to a tls endpoint"):
		return &TLSError{Err: errors.New("the broker wants TLS at this address")}
	}
	return err
}

// cause keeps the part of a client's error that a person can act on.
func cause(err error) error {
	var (
		dns *net.DNSError
		op  *net.OpError
		eof *kgo.ErrFirstReadEOF
	)
	switch {
	case Refused(err):
		return err
	case errors.As(err, &dns):
		return fmt.Errorf("host %s is not known", dns.Name)
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer in time")
	case errors.As(err, &eof):
		if strings.Contains(eof.Error(), "client is using TLS") {
			return errors.New("the connection was closed in the TLS handshake; does the broker speak TLS at this address?")
		}
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
