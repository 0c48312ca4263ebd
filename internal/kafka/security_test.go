package kafka

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

func login(t *testing.T, mechanism, user, password string) *Login {
	t.Helper()
	l, err := NewLogin(mechanism, user, func(context.Context) (string, error) { return password, nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// trusting is a TLS configuration that trusts the authorities of a file, with a client certificate when named.
func trusting(t *testing.T, ca string, pair ...string) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	c.RootCAs.AppendCertsFromPEM(text)
	if len(pair) == 2 {
		cert, err := tls.LoadX509KeyPair(pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c
}

// TestASecuredBroker reads through every kind of listener of a real broker, and is refused by each in clear words.
func TestASecuredBroker(t *testing.T) {
	t.Parallel()
	b := kafkatest.StartSecured(t)
	name := kafkatest.Name("secret")
	kafkatest.Topic(t, b.Brokers, name, 1, nil)
	kafkatest.Produce(t, b.Brokers, name, 0, "a", "b", "c")
	ca, good := b.Files.CA, func(mechanism string) *Login { return login(t, mechanism, kafkatest.User, kafkatest.Password) }
	bad := func(mechanism string) *Login { return login(t, mechanism, kafkatest.User, "hunter2") }

	for what, c := range map[string]Config{
		"SCRAM-SHA-512 over TLS": {Brokers: b.SASL, TLS: trusting(t, ca), Login: good(ScramSHA512)},
		"SCRAM-SHA-256 over TLS": {Brokers: b.SASL, TLS: trusting(t, ca), Login: good(ScramSHA256)},
		"PLAIN over TLS":         {Brokers: b.SASL, TLS: trusting(t, ca), Login: good(Plain)},
		"SCRAM in the clear":     {Brokers: b.Clear, Login: good(ScramSHA512)},
		"PLAIN in the clear":     {Brokers: b.Clear, Login: good(Plain)},
		"a client certificate":   {Brokers: b.TLS, TLS: trusting(t, ca, b.Files.ClientCert, b.Files.ClientKey)},
	} {
		t.Run(what, func(t *testing.T) { readsAll(t, c, name) })
	}
	wrongName := trusting(t, ca)
	wrongName.ServerName = "kafka.example"
	for what, c := range map[string]struct {
		Config
		want string
	}{
		"wrong SCRAM-SHA-512 password": {Config{Brokers: b.SASL, TLS: trusting(t, ca), Login: bad(ScramSHA512)}, `login of user "app" by SCRAM-SHA-512: wrong user or password`},
		"wrong SCRAM-SHA-256 password": {Config{Brokers: b.Clear, Login: bad(ScramSHA256)}, `login of user "app" by SCRAM-SHA-256: wrong user or password`},
		"wrong PLAIN password":         {Config{Brokers: b.SASL, TLS: trusting(t, ca), Login: bad(Plain)}, `login of user "app" by PLAIN: wrong user or password`},
		"unknown user":                 {Config{Brokers: b.Clear, Login: login(t, ScramSHA512, "nobody", "hunter2")}, `login of user "nobody" by SCRAM-SHA-512: wrong user or password`},
		"no login":                     {Config{Brokers: b.Clear}, "does the broker require TLS or SASL?"},
		"no client certificate":        {Config{Brokers: b.TLS, TLS: trusting(t, ca)}, "it may require a client certificate"},
		"another authority":            {Config{Brokers: b.SASL, TLS: trusting(t, b.Files.OtherCA), Login: good(ScramSHA512)}, "the broker's certificate is not trusted"},
		"the system's authorities":     {Config{Brokers: b.SASL, TLS: &tls.Config{MinVersion: tls.VersionTLS12}, Login: good(Plain)}, "the broker's certificate is not trusted"},
		"another name":                 {Config{Brokers: b.SASL, TLS: wrongName, Login: good(ScramSHA512)}, "the broker's certificate is not for this address"},
		"TLS to a plain listener":      {Config{Brokers: b.Brokers, TLS: trusting(t, ca)}, "does the broker speak TLS at this address?"},
		"plain text to a TLS listener": {Config{Brokers: b.TLS}, "the broker requires TLS at this address"},
	} {
		t.Run(what, func(t *testing.T) { refuses(t, c.Config, c.want) })
	}
}

// readsAll reads a, b, c with Admin and Fetcher.
func readsAll(t *testing.T, c Config, name string) {
	t.Helper()
	a, err := NewAdmin(c)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	topics, err := a.Topics(t.Context(), []string{name})
	if err != nil {
		t.Fatal(err)
	}
	cl, err := NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	f := NewFetcher(cl, FetchConfig{})
	defer f.Close()
	p := topics[0].Partitions[0].Partition
	r := newReader(f, Cursor{Partition: p})
	r.to(t, 3)
	if got := strings.Join(r.values[p], ""); got != "abc" {
		t.Errorf("read %q", got)
	}
}

// refuses wants one clear line, soon, that holds no password.
func refuses(t *testing.T, c Config, want string) {
	t.Helper()
	a, err := NewAdmin(c)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	begin := time.Now()
	err = a.Ping(t.Context())
	t.Logf("after %s: %v", time.Since(begin).Round(time.Millisecond), err) // measured, not asserted: the machine is shared
	var connect *ConnectError
	if !errors.As(err, &connect) || !strings.Contains(err.Error(), want) {
		t.Fatalf("got %v, want a ConnectError with %q", err, want)
	}
	for _, text := range []string{err.Error(), fmt.Sprintf("%+v %#v", c, c.Login)} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, kafkatest.Password) || strings.Contains(err.Error(), "\n") {
			t.Errorf("the text shows a password or has several lines: %s", text)
		}
	}
}

// withLogins is an in-process broker that counts the logins, and refuses the password wrong as a real one does: by itself it
// would only hang up.
func withLogins(t *testing.T) (brokers []string, logins *atomic.Int64) {
	t.Helper()
	c := kafkatest.FakeCluster(t, kfake.EnableSASL(), kfake.Superuser(Plain, "app", "right"))
	logins = &atomic.Int64{}
	c.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		logins.Add(1)
		login := req.(*kmsg.SASLAuthenticateRequest)
		if !bytes.HasSuffix(login.SASLAuthBytes, []byte("wrong")) {
			return nil, nil, false
		}
		resp := login.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return resp, nil, true
	})
	return c.ListenAddrs(), logins
}

func TestARefusedPasswordIsNotSentAgainAndAgain(t *testing.T) {
	brokers, logins := withLogins(t)
	now := time.Now()
	l := login(t, Plain, "app", "wrong")
	l.now = func() time.Time { return now }
	for range 3 { // clients of one process share the login
		a, err := NewAdmin(Config{Brokers: brokers, Login: l})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		for range 5 {
			if err := a.Ping(t.Context()); !Refused(err) {
				t.Fatalf("got %v, want a refused login", err)
			}
		}
	}
	if n := logins.Load(); n != 1 {
		t.Errorf("the password was sent %d times, want once", n)
	}
	for i, pause := range []time.Duration{1, 2, 4, 8} {
		now = now.Add(pause * time.Second)
		refuses(t, Config{Brokers: brokers, Login: l}, "wrong user or password")
		if n := logins.Load(); n != int64(i)+2 {
			t.Errorf("after another pause of %d s the password was sent %d times in all", pause, n)
		}
	}
}

// TestANewPasswordIsUsedWithoutARestart has a reader that is refused, until the source of the password has the right one.
func TestANewPasswordIsUsedWithoutARestart(t *testing.T) {
	t.Parallel()
	brokers, _ := withLogins(t)
	var password atomic.Value
	password.Store("right")
	l, err := NewLogin(Plain, "app", func(context.Context) (string, error) { return password.Load().(string), nil })
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Brokers: brokers, Login: l}
	a, err := NewAdmin(c)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	name := kafkatest.Name("t")
	if err := a.CreateTopic(t.Context(), name, 1, nil); err != nil {
		t.Fatal(err)
	}
	facts, err := a.Offsets(t.Context(), []string{name})
	if err != nil {
		t.Fatal(err)
	}
	password.Store("wrong")
	cl, err := NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	f := NewFetcher(cl, FetchConfig{})
	defer f.Close()
	r := newReader(f, Cursor{Partition: facts[0].Partition})
	r.until(t, "the login is refused", func() bool { return len(r.errs) > 0 })
	if !Refused(r.errs[0]) || Final(r.errs[0]) {
		t.Errorf("got %v, want a refused login that may pass", r.errs[0])
	}
	password.Store("right")
	r.until(t, "the reader goes on", func() bool { return r.last[facts[0].Partition].Err == nil })
}

func TestAPasswordSourceThatFailsIsNamed(t *testing.T) {
	brokers, _ := withLogins(t)
	l, err := NewLogin(Plain, "app", func(context.Context) (string, error) { return "", errors.New("read password file: gone") })
	if err != nil {
		t.Fatal(err)
	}
	refuses(t, Config{Brokers: brokers, Login: l}, "read password file: gone")
}
