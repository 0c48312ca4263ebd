package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// secret writes a password file and returns its path.
func (w *world) secret(name, password string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(password+"\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// login is the environment of a user that logs in over TLS.
func (w *world) login(b *kafkatest.Secured, user, passwordFile string) []string {
	return []string{
		"KAPPACTL_BROKERS=" + strings.Join(b.SASL, ","), "KAPPACTL_KAFKA_TLS_CA_FILE=" + b.Files.CA,
		"KAPPACTL_KAFKA_SASL_MECHANISM=SCRAM-SHA-512", "KAPPACTL_KAFKA_SASL_USER=" + user, "KAPPACTL_KAFKA_SASL_PASSWORD_FILE=" + passwordFile,
	}
}

// TestABrokerWithTLSAndPasswords deploys over SASL_SSL from a settings file, and over a client certificate; a wrong password is
// said once, at once, by every command and by the agent, and is shown by none.
func TestABrokerWithTLSAndPasswords(t *testing.T) {
	t.Parallel()
	b := kafkatest.StartSecured(t)
	w := newWorld(t, b.SASL)
	topic := clicksTopic(t, b.Brokers, 20_000)
	right, wrong := w.secret("right", kafkatest.Password), w.secret("wrong", "hunter2")
	job := w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0))
	settings := w.file("kappactl.yaml", fmt.Sprintf(`
contexts:
  scram:
    kafka: {tls: {ca_file: %s}, sasl: {mechanism: SCRAM-SHA-512, user: app, password_command: [cat, %s]}}
`, b.Files.CA, right))

	a := w.serve() // ./kappactl.yaml
	w.ok("deploy", job)
	produceClicks(t, b.Brokers, topic, 20_000, 1000)
	w.equal("clicks")
	a.stop()
	if text := a.log.String(); strings.Contains(text, kafkatest.Password) {
		t.Errorf("the agent's log shows the password:\n%s", text)
	}

	if err := os.Remove(settings); err != nil {
		t.Fatal(err)
	}
	w.vars = []string{
		"KAPPACTL_BROKERS=" + b.TLS[0], "KAPPACTL_KAFKA_TLS_CA_FILE=" + b.Files.CA,
		"KAPPACTL_KAFKA_TLS_CERT_FILE=" + b.Files.ClientCert, "KAPPACTL_KAFKA_TLS_KEY_FILE=" + b.Files.ClientKey,
	}
	a = w.serve()
	w.ok("deploy", w.file("v2.yaml", fmt.Sprintf(clicksJob, topic, 50)), "--promote", "auto")
	w.equal("clicks")

	w.vars = w.login(b, kafkatest.User, wrong)
	refusedLogin := `login of user "app" by SCRAM-SHA-512: wrong user or password`
	v3 := w.file("v3.yaml", fmt.Sprintf(clicksJob, topic, 60))
	for _, args := range [][]string{{"deploy", v3}, {"verify", "clicks"}, {"deploy", v3, "--debug"}} {
		begin := time.Now()
		says(t, w.run(args...), 11, refusedLogin)
		t.Logf("%v took %s", args, time.Since(begin).Round(time.Millisecond)) // measured, not asserted: the machine is shared
	}
	toldOf(t, w.run("deploy", v3), unusable, "the password for the brokers is wrong")
	a.stop()
	says(t, w.run("serve", "--http", "127.0.0.1:0"), 11, refusedLogin)
	w.vars = w.login(b, kafkatest.User, filepath.Join(w.dir, "nowhere"))
	says(t, w.run("deploy", v3, "--wait-agent", "0s"), 11, "no agent")
	says(t, w.run("serve"), 2, "read password file")
}

// TestAPasswordThatIsChangedUnderARunningAgent: the agent goes on by itself once the file has the new one.
func TestAPasswordThatIsChangedUnderARunningAgent(t *testing.T) {
	t.Parallel()
	b := kafkatest.StartSecured(t)
	w := newWorld(t, b.SASL)
	topic := clicksTopic(t, b.Brokers, 10_000)
	file := w.secret("password", kafkatest.Password)
	w.vars = w.login(b, kafkatest.User, file)
	w.serve()
	w.ok("deploy", w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0)))

	b.AddUser(t, kafkatest.User, "another")
	b.Restart(t) // connections that are logged in stay so
	produceClicks(t, b.Brokers, topic, 10_000, 1000)
	w.until("a command is refused", func() bool {
		return w.run("verify", "clicks").code == 11
	})
	w.secret("password", "another")
	kafkatest.Until(t, "the agent has read on", func() bool { return w.count() == 11_000 })
	w.equal("clicks")
}
