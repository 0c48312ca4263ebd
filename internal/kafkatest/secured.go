package kafkatest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kappactl/kappactl/internal/certtest"
)

// Secured is a real broker with listeners of every kind. Brokers of the RealBroker is the plain one, without
// authentication, for the test's own use.
type Secured struct {
	*RealBroker
	SASL  []string // TLS, then SASL: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512
	Clear []string // SASL without TLS
	TLS   []string // TLS with a client certificate, which is the user's name: CN=client
	Files certtest.Files
}

// The user that every secured broker accepts by PLAIN, and by SCRAM after AddUser.
const (
	User     = "app"
	Password = "correct horse, battery: staple=9"
)

// StartSecured starts a broker with TLS and SASL for this test alone.
func StartSecured(t testing.TB, set ...string) *Secured {
	t.Helper()
	s := &Secured{Files: certtest.Make(t, "client", "127.0.0.1", "localhost")}
	p := freePorts(t, 5)
	at := func(n int) string { return fmt.Sprintf("127.0.0.1:%d", p[n]) }
	s.SASL, s.Clear, s.TLS = []string{at(2)}, []string{at(3)}, []string{at(4)}
	public := "PLAINTEXT://" + at(0) + ",SASL_SSL://" + at(2) + ",SASL_PLAINTEXT://" + at(3) + ",SSL://" + at(4)
	settings := []string{
		"listeners=" + public + ",CONTROLLER://" + at(1),
		"advertised.listeners=" + public,
		"controller.quorum.voters=1@" + at(1),
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL",
		"ssl.keystore.type=PEM", "ssl.keystore.location=" + s.Files.Server,
		"ssl.truststore.type=PEM", "ssl.truststore.location=" + s.Files.CA,
		"listener.name.ssl.ssl.client.auth=required",
		"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
	}
	for _, listener := range []string{"sasl_ssl", "sasl_plaintext"} {
		settings = append(settings,
			fmt.Sprintf("listener.name.%s.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule "+
				"required user_%s=%q;", listener, User, Password),
			fmt.Sprintf("listener.name.%s.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;", listener),
			fmt.Sprintf("listener.name.%s.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;", listener),
		)
	}
	b, err := launch(t.TempDir(), p[0], append(settings, set...), ShortLived)
	giveUp(t, err)
	t.Cleanup(b.stop)
	s.RealBroker = b
	s.AddUser(t, User, Password)
	return s
}

// AddUser makes or changes a SCRAM user.
func (s *Secured) AddUser(t testing.TB, user, password string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	admin := kadm.NewClient(Client(t, s.Brokers))
	// one per request: a user may occur in it only once
	for _, m := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} {
		done, err := admin.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{
			{User: user, Mechanism: m, Iterations: 4096, Password: password},
		})
		if err == nil {
			err = done.Error()
		}
		if err != nil {
			t.Fatalf("make Kafka user %s: %v", user, err)
		}
	}
}

// freePorts returns ports below the range of outgoing connections, like kafka.sh.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for tries := 0; len(ports) < n; tries++ {
		if tries > 1000 {
			t.Fatal("no free ports")
		}
		p := 15000 + rand.IntN(15000) //nolint:gosec // a port, no secret
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
		if err != nil {
			continue
		}
		defer l.Close() // close after all are chosen, so that no two are equal
		ports = append(ports, p)
	}
	return ports
}
