package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestRightsThatAreMissingComeWithTheCommandThatGrantsThem runs each command, for a user with a password and one with
// a certificate.
func TestRightsThatAreMissingComeWithTheCommandThatGrantsThem(t *testing.T) {
	t.Parallel()
	b := kafkatest.StartSecured(t, kafkatest.WithACLs()...)
	topic := kafkatest.Name("secret")
	kafkatest.Topic(t, b.Brokers, topic, 1, nil)
	pair, err := tls.LoadX509KeyPair(b.Files.ClientCert, b.Files.ClientKey)
	if err != nil {
		t.Fatal(err)
	}
	certified := trusting(t, b.Files.CA)
	certified.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	for what, c := range map[string]Config{
		"a password":    {Brokers: b.SASL, TLS: trusting(t, b.Files.CA), Login: login(t, ScramSHA512, kafkatest.User, kafkatest.Password)},
		"a certificate": {Brokers: b.TLS, TLS: certified},
	} {
		t.Run(what, func(t *testing.T) {
			a, err := NewAdmin(c)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			causes, cures, err := a.Lacking(t.Context())
			if err != nil || len(causes) != 2 || len(cures) != 2 {
				t.Fatalf("%q %q %v", causes, cures, err)
			}
			_, err = a.Topics(t.Context(), []string{topic})
			_, cure, _ := strings.Cut(refusalOf(t, err), "; ")
			for _, command := range append(cures, cure) {
				if !strings.Contains(command, " --bootstrap-server "+c.Brokers[0]+" --command-config admin.properties --add ") {
					t.Errorf("%s cannot be run as it is", command)
				}
				b.Allow(t, command)
			}
			if _, err := a.Topics(t.Context(), []string{topic}); err != nil {
				t.Error(err)
			}
			if causes, _, err := a.Lacking(t.Context()); err != nil || len(causes) > 0 {
				t.Errorf("with the rights granted: %q %v", causes, err)
			}
		})
	}
}

// TestARefusedPasswordIsToldOnce counts what Notify is told over many tries with a wrong password, then the right
// one.
func TestARefusedPasswordIsToldOnce(t *testing.T) {
	t.Parallel()
	b := kafkatest.StartSecured(t)
	var right atomic.Bool
	l, err := NewLogin(ScramSHA512, kafkatest.User, func(context.Context) (string, error) {
		if right.Load() {
			return kafkatest.Password, nil
		}
		return "hunter2", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var refused, back atomic.Int32
	l.Notify = func(err error) {
		if err == nil {
			back.Add(1)
		} else {
			refused.Add(1)
		}
	}
	a, err := NewAdmin(Config{Brokers: b.Clear, Login: l})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for range 3 {
		if err := a.Ping(t.Context()); !Refused(err) {
			t.Fatalf("a wrong password: %v", err)
		}
	}
	right.Store(true)
	if err := a.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if refused.Load() != 1 || back.Load() != 1 {
		t.Errorf("told %d refusals and %d times that it is let in again", refused.Load(), back.Load())
	}
}

// refusalOf is the cause and the next command of a refusal.
func refusalOf(t *testing.T, err error) string {
	t.Helper()
	var r *job.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("got %v, want a refusal", err)
	}
	return r.Cause + "; " + r.Next
}
