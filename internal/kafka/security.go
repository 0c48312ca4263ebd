package kafka

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// The SASL mechanisms that this package speaks.
const (
	Plain       = "PLAIN"
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
)

// Login proves to the brokers who we are. All clients of a process share one, so that a password that the brokers refuse
// is not sent again by each of them. It is safe for concurrent use.
type Login struct {
	mechanism string
	user      string
	password  func(context.Context) (string, error)
	now       func() time.Time

	mu       sync.Mutex // guards what follows
	tried    [sha256.Size]byte
	refused  int // times in a row that the password in tried was refused
	waitTill time.Time
}

// NewLogin makes a Login with one of the mechanisms above. password is called at each login, so that a new password in a
// file is used without a restart.
func NewLogin(mechanism, user string, password func(context.Context) (string, error)) (*Login, error) {
	switch mechanism {
	case Plain, ScramSHA256, ScramSHA512:
		return &Login{mechanism: mechanism, user: user, password: password, now: time.Now}, nil
	}
	return nil, fmt.Errorf("unknown SASL mechanism %q", mechanism)
}

// String names user and mechanism.
func (l *Login) String() string { return l.user + " (" + l.mechanism + ")" }

// Name is the mechanism's name.
func (l *Login) Name() string { return l.mechanism }

// Authenticate begins to log in over a new connection. While a refused password has not changed, and for a time that grows
// from 1 s to 5 min, it refuses by itself: brokers lock users out, and log each failure.
func (l *Login) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	password, err := l.password(ctx)
	if err != nil {
		return nil, nil, &LoginError{User: l.user, Mechanism: l.mechanism, Err: err}
	}
	if err := l.mayTry(password); err != nil {
		return nil, nil, err
	}
	var m sasl.Mechanism
	switch l.mechanism {
	case Plain:
		m = plain.Auth{User: l.user, Pass: password}.AsMechanism()
	case ScramSHA256:
		m = scram.Auth{User: l.user, Pass: password}.AsSha256Mechanism()
	default:
		m = scram.Auth{User: l.user, Pass: password}.AsSha512Mechanism()
	}
	session, first, err := m.Authenticate(ctx, host)
	if err != nil {
		return nil, nil, l.wrong()
	}
	return &loginSession{Login: l, session: session}, first, nil
}

func (l *Login) mayTry(password string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if hash := sha256.Sum256([]byte(password)); hash != l.tried {
		l.tried, l.refused = hash, 0
	}
	if l.refused > 0 && l.now().Before(l.waitTill) {
		return l.wrong()
	}
	return nil
}

// noteRefused remembers that the brokers refused the password.
func (l *Login) noteRefused() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused > 0 && l.now().Before(l.waitTill) {
		return // several connections at once, one refusal
	}
	l.refused++
	l.waitTill = l.now().Add(min(time.Second<<min(l.refused-1, 10), 5*time.Minute))
}

func (l *Login) noteAccepted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = 0
}

// wrong is the refusal, without what the broker or the mechanism says: some of it is derived from the password.
func (l *Login) wrong() error {
	return &LoginError{User: l.user, Mechanism: l.mechanism, Err: errWrongPassword}
}

// loginSession is one login over one connection.
type loginSession struct {
	*Login
	session sasl.Session
}

// Challenge answers the broker.
func (s *loginSession) Challenge(challenge []byte) (bool, []byte, error) {
	done, answer, err := s.session.Challenge(challenge)
	switch {
	case err != nil:
		s.noteRefused()
		return false, nil, s.wrong()
	case done:
		s.noteAccepted()
	}
	return done, answer, nil
}

// loginOf is the Login of a client, or nil.
func loginOf(cl *kgo.Client) *Login {
	if ms, ok := cl.OptValue(kgo.SASL).([]sasl.Mechanism); ok && len(ms) == 1 {
		if l, ok := ms[0].(*Login); ok {
			return l
		}
	}
	return nil
}
