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

// ConnectError reports that the cluster cannot be reached or refuses the client. Its text is one line without secrets.
type ConnectError struct {
	Brokers []string
	Err     error
}

func (e *ConnectError) Error() string {
	return "Kafka at " + strings.Join(e.Brokers, ",") + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// Cure returns a short hint on what to check.
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

// LoginError reports that the brokers refuse the user. Retrying does not help until a person has acted.
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

// Unwrap returns the cause.
func (e *LoginError) Unwrap() error { return e.Err }

// TLSError reports that one side does not accept the other's certificate, or that only one side uses TLS. Retrying does
// not help until a person has acted.
type TLSError struct{ Err error }

func (e *TLSError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *TLSError) Unwrap() error { return e.Err }

// Refused reports whether a person has to act before client and broker can talk: wrong password or wrong certificate.
func Refused(err error) bool {
	var login *LoginError
	var trust *TLSError
	return errors.As(err, &login) || errors.As(err, &trust)
}

// MissingTopicError reports a topic that does not exist.
type MissingTopicError struct{ Topic string }

func (e *MissingTopicError) Error() string { return fmt.Sprintf("topic %q does not exist", e.Topic) }

// GapError reports an offset that the log does not hold: retention deleted it (Wanted < Start), or the log was
// truncated (Wanted > End). Continuing at Start would lose [Wanted, Start).
type GapError struct {
	job.Partition
	Wanted, Start, End int64
	// Cut reports that the log held [End, Wanted) under leader epoch Epoch and was truncated since. Other records may
	// be at these offsets by now. Start is unknown then.
	Cut   bool
	Epoch int32
}

func (e *GapError) Error() string {
	if e.Cut {
		return fmt.Sprintf("%s: the log was cut off at offset %d after a change of leader: offsets [%d,%d), as they stood "+
			"under leader epoch %d, are lost, and others are written there",
			e.Partition, e.End, e.End, e.Wanted, e.Epoch)
	}
	if e.Wanted > e.End {
		return fmt.Sprintf("%s: offset %d is beyond the end of the log, which holds [%d,%d)", e.Partition, e.Wanted, e.Start,
			e.End)
	}
	return fmt.Sprintf("%s: offsets [%d,%d) are gone, the log holds [%d,%d)", e.Partition, e.Wanted, e.Start, e.Start,
		e.End)
}

// RecreatedError reports a topic that was deleted and created again under the same name. Offsets of the old topic are
// meaningless in the new one.
type RecreatedError struct {
	job.Partition
	Now job.TopicID
}

func (e *RecreatedError) Error() string {
	if e.TopicID == nameID(e.Topic) {
		return fmt.Sprintf("%s: the brokers return a topic id (%s) now and returned none before, so this may be another topic", e.Partition, e.Now)
	}
	return fmt.Sprintf("%s: topic was deleted and recreated (its id was %s and is now %s)", e.Partition, e.TopicID, e.Now)
}

// OtherClusterError reports that another cluster answers than the one whose offsets are known, because its name
// temporarily points elsewhere. The error is temporary.
type OtherClusterError struct{ Want, Now string }

func (e *OtherClusterError) Error() string {
	return fmt.Sprintf("the brokers belong to Kafka cluster %s; the offsets are of cluster %s", e.Now, e.Want)
}

// TooLargeError reports a record batch that this client can never read. Size is 0 if only the limit is known.
type TooLargeError struct {
	job.Partition
	Offset      int64
	End         int64 // the offset after the batch; 0 if unknown
	Size, Limit int64
}

func (e *TooLargeError) Error() string {
	size := "more"
	if e.Size > 0 {
		size = fmt.Sprintf("%d bytes, more", e.Size)
	}
	return fmt.Sprintf("%s: the record batch at offset %d has %s than the client's limit of %d bytes", e.Partition,
		e.Offset, size, e.Limit)
}

// Final reports whether err of a Fetched stops the reading of the partition until a person acts.
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

// connectError returns a ConnectError for an error of a client that could not talk to a broker.
func connectError(brokers []string, err error) *ConnectError {
	return &ConnectError{Brokers: brokers, Err: cause(err)}
}

// explainLogin converts a broker's refusal of the client's user or certificate into a typed error, and reports it to
// the client's Login.
func explainLogin(cl *kgo.Client, err error) error {
	login := loginOf(cl)
	switch {
	case err == nil || Refused(err):
		return err
	case login != nil && errors.Is(err, kerr.SaslAuthenticationFailed):
		login.noteRefused()
		return login.wrong()
	case login != nil && errors.Is(err, kerr.UnsupportedSaslMechanism):
		return &LoginError{
			User: login.user, Mechanism: login.mechanism,
			Err: errors.New("the broker does not offer this mechanism to this listener"),
		}
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.IllegalSaslState):
		return &LoginError{Err: errors.New("the broker requires a login")}
	}
	return explainTLS(err)
}

// explainTLS converts an error of the TLS handshake into a TLSError with a readable text.
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
		return &TLSError{Err: fmt.Errorf("the broker ended the TLS handshake; it may require a client certificate: %w", err)}
	case errors.As(err, &header):
		return &TLSError{Err: errors.New("the broker does not speak TLS at this address")}
	case strings.Contains(err.Error(), "plaintext connection speaking to a tls endpoint"):
		return &TLSError{Err: errors.New("the broker requires TLS at this address")}
	}
	return err
}

// cause returns the part of a client's error that a person can act on.
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
		return fmt.Errorf("host %s is unknown", dns.Name)
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer in time")
	case errors.As(err, &eof):
		if strings.Contains(eof.Error(), "client is using TLS") {
			return errors.New("the connection was closed in the TLS handshake; does the broker speak TLS at this address?")
		}
		return errors.New("the connection was closed at once; does the broker require TLS or SASL?")
	case errors.As(err, &op) && op.Timeout():
		return errors.New("no answer in time")
	case errors.As(err, &op) && op.Op == "dial":
		return op.Err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return errors.New("the connection was lost")
	}
	return err
}

// answered reports whether a broker answered, even if with an error.
func answered(err error) bool {
	var k *kerr.Error
	return errors.As(err, &k)
}
