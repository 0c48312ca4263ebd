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

// The supported SASL mechanisms.
const (
	Plain       = "PLAIN"
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
)

// Login authenticates the client to the brokers. All clients of a process share one, so that not each of them sends a
// refused password again. It is safe for concurrent use.
type Login struct {
	mechanism string
	user      string
	password  func(context.Context) (string, error)
	now       func() time.Time
	// Notify, if set, is called with the error when the brokers first refuse a password, and with nil when they accept
	// the user again. Set it before the first login.
	Notify func(refused error)

	mu       sync.Mutex // guards the fields below
	tried    [sha256.Size]byte
	refused  int // consecutive refusals of the password in tried
	waitTill time.Time
	out      bool // the brokers' last answer was a refusal
}

// NewLogin creates a Login with one of the mechanisms above. It calls password at each login, so that a new password in
// a file takes effect without a restart.
func NewLogin(mechanism, user string, password func(context.Context) (string, error)) (*Login, error) {
	switch mechanism {
	case Plain, ScramSHA256, ScramSHA512:
		return &Login{mechanism: mechanism, user: user, password: password, now: time.Now}, nil
	}
	return nil, fmt.Errorf("unknown SASL mechanism %q", mechanism)
}

// String returns user and mechanism.
func (l *Login) String() string { return l.user + " (" + l.mechanism + ")" }

// Name returns the mechanism's name.
func (l *Login) Name() string { return l.mechanism }

// Authenticate starts a login over a new connection. While a refused password is unchanged, it fails without asking the
// brokers for a period that grows from 1 s to 5 min, because brokers lock users out and log each failure.
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

// noteRefused records that the brokers refused the password.
func (l *Login) noteRefused() {
	if l.countRefused() == 1 && l.Notify != nil {
		l.Notify(l.wrong())
	}
}

// countRefused returns the number of consecutive refusals of the password, or 0 if this refusal was already counted.
func (l *Login) countRefused() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused > 0 && l.now().Before(l.waitTill) {
		return 0 // several connections report the same refusal
	}
	l.refused++
	l.waitTill = l.now().Add(min(time.Second<<min(l.refused-1, 10), 5*time.Minute))
	l.out = true
	return l.refused
}

func (l *Login) noteAccepted() {
	l.mu.Lock()
	back := l.out
	l.refused, l.out = 0, false
	l.mu.Unlock()
	if back && l.Notify != nil {
		l.Notify(nil)
	}
}

// wrong returns the error of a refused password. It omits the text of the broker and the mechanism, parts of which
// derive from the password.
func (l *Login) wrong() error {
	return &LoginError{User: l.user, Mechanism: l.mechanism, Err: errWrongPassword}
}

// loginSession is one login over one connection.
type loginSession struct {
	*Login
	session sasl.Session
}

// Challenge answers the broker's challenge.
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

// loginOf returns the Login of a client, or nil.
func loginOf(cl *kgo.Client) *Login {
	if ms, ok := cl.OptValue(kgo.SASL).([]sasl.Mechanism); ok && len(ms) == 1 {
		if l, ok := ms[0].(*Login); ok {
			return l
		}
	}
	return nil
}
