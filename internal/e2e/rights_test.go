package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// document reads a file of docs.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// roles runs docs/rights.sql twice with role names of this test, in a database where PUBLIC may do nothing, as an owner that is
// no superuser.
func (w *world) roles(sql string) (agent, cli, reader string) {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	run := func(sql string) {
		w.t.Helper()
		if _, err := w.pool.Exec(ctx, sql); err != nil {
			w.t.Fatalf("%v in:\n%s", err, sql)
		}
	}
	names := []string{w.name("agent"), w.name("cli"), w.name("reader")}
	for i, placeholder := range []string{"kappactl_agent", "kappactl_cli", "kappactl_reader"} {
		sql = strings.ReplaceAll(sql, placeholder, names[i])
	}
	run(`DO $$ BEGIN EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database()); END $$; REVOKE ALL ON SCHEMA public FROM PUBLIC`)
	w.t.Cleanup(func() {
		for _, name := range names {
			run("DROP OWNED BY " + pg.Ident(name) + " CASCADE")
			run("DROP ROLE " + pg.Ident(name))
		}
	})
	dba := w.managed()
	for range 2 {
		run("SET SESSION AUTHORIZATION " + dba + ";\n" + sql + "\nRESET SESSION AUTHORIZATION")
	}
	dsn := func(name string) string {
		run("ALTER ROLE " + pg.Ident(name) + " PASSWORD 'hunter2'")
		return "KAPPACTL_DSN=" + pgtest.As(w.dsn, name, "hunter2")
	}
	return dsn(names[0]), dsn(names[1]), dsn(names[2])
}

// managed makes a role as a managed PostgreSQL has it, with CREATEROLE, the owner of the database and of the control schema, and
// returns its quoted name.
func (w *world) managed() string {
	w.t.Helper()
	dba := pg.Ident(w.name("dba"))
	run := func(sql string) {
		w.t.Helper()
		if _, err := w.pool.Exec(context.WithoutCancel(w.t.Context()), sql); err != nil {
			w.t.Fatalf("%v in:\n%s", err, sql)
		}
	}
	run(`CREATE ROLE ` + dba + ` CREATEROLE; ALTER SCHEMA kappactl OWNER TO ` + dba + `; DO $$ DECLARE name text; BEGIN
		EXECUTE format('ALTER DATABASE %I OWNER TO ` + dba + `', current_database());
		FOR name IN SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'kappactl'::regnamespace AND c.relkind = 'r' LOOP
			EXECUTE format('ALTER TABLE kappactl.%I OWNER TO ` + dba + `', name);
		END LOOP; END $$`)
	w.t.Cleanup(func() {
		run("REASSIGN OWNED BY " + dba + " TO CURRENT_USER; DROP OWNED BY " + dba + "; DROP ROLE " + dba)
	})
	return dba
}

// as is the world of another user.
func (w *world) as(vars ...string) *world {
	other := *w
	other.vars = vars
	return &other
}

// TestTheListedRightsSuffice gives agent, commands and reader what docs/rights.sql and docs/security.md list, and nothing else,
// and runs the whole life of a job: once with all of it, once with only what is not called optional.
func TestTheListedRightsSuffice(t *testing.T) {
	t.Parallel()
	b := kafkatest.StartSecured(t, kafkatest.WithACLs()...)
	sql := document(t, "rights.sql")
	required, _, _ := strings.Cut(sql, "-- Optional")
	for what, sql := range map[string]string{"all": sql, "required": required} {
		agentUser, cliUser := "kappactl-agent-"+what, "kappactl-cli-"+what
		b.AddUser(t, agentUser, kafkatest.Password)
		b.AddUser(t, cliUser, kafkatest.Password)
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, b.SASL)
			topic := kafkatest.Name("clicks")
			kafkatest.Topic(t, b.Brokers, topic, 4, nil)
			kafkatest.Produce(t, b.Brokers, topic, 0, `{"page":"seven"}`)
			produceClicks(t, b.Brokers, topic, 0, 20_000)
			for line := range strings.Lines(document(t, "security.md")) {
				if !strings.HasPrefix(line, "kafka-acls ") || what == "required" && !strings.Contains(line, "--topic") {
					continue
				}
				b.Allow(t, strings.NewReplacer("--topic clicks", "--topic "+topic, "User:kappactl-agent", "User:"+agentUser, "User:kappactl-cli", "User:"+cliUser).Replace(line))
			}
			asAgent, asCLI, asReader := w.roles(sql)
			password := w.secret("password", kafkatest.Password)
			agent := w.as(append(w.login(b, agentUser, password), asAgent)...)
			cli := w.as(append(w.login(b, cliUser, password), asCLI)...)
			reader := w.as(append(w.login(b, cliUser, password), asReader)...)
			served := agent.serve()

			v1 := w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0))
			if what == "required" { // with more it works too
				cli.looksFirst(v1)
			}
			cli.ok("deploy", v1)
			cli.ok("deploy", w.file("v2.yaml", fmt.Sprintf(clicksJob, topic, 100)))
			if what == "required" {
				cli.looks(topic, v1, reader)
			}
			cli.ok("promote", "clicks")
			produceClicks(t, b.Brokers, topic, 20_000, 2000)
			cli.ok("rollback", "clicks")
			reader.caughtUp("clicks")
			reader.equal("clicks")
			reader.ok("status", "clicks")
			reader.ok("wait", "clicks", "v1", "--for", "live")
			cli.equal("clicks")
			cli.ok("pause", "clicks", "v2")
			cli.ok("resume", "clicks", "v2")
			cli.ok("pin", "clicks", "v2")
			cli.ok("unpin", "clicks", "v2")
			// A paused schedule stays when its job is not of mode lambda.
			w.exec(`INSERT INTO kappactl.schedule (job, expression, zone, missed, overlap, missed_after, since, next_at, paused_at)
				VALUES ('clicks', '@daily', 'UTC', 'run_once', 'skip', '10m', now(), now(), now())`)
			reader.ok("schedule", "list", "clicks")
			cli.ok("schedule", "resume", "clicks")
			cli.ok("promote", "clicks", "v2")
			cli.ok("retire", "clicks", "v1", "--now", "--yes")
			w.brokers = b.Brokers // the list of groups is the test's own question
			w.goneFrom("clicks", "v1")
			cli.ok("deploy", w.file("v3.yaml", fmt.Sprintf(clicksJob, topic, 50)))
			cli.ok("abort", "clicks", "v3")
			cli.forgesNothing()
			if what == "required" {
				served.stop()
				served = w.gapAccepted(topic, agent, cli, reader)
			}
			w.takenOver(cli)
			cli.ok("drop", "clicks", "--yes")
			w.goneFrom("clicks", "v2")
			w.rightsAreNamed(topic, reader)
			if text := served.log.String(); strings.Contains(text, "permission denied") || what == "all" && strings.Contains(text, "AUTHORIZATION_FAILED") {
				t.Errorf("the agent lacks a right:\n%s", tail(text, 30))
			}
		})
	}
}

// looksFirst is what a person does with a job file before its first deploy.
func (w *world) looksFirst(file string) {
	w.t.Helper()
	w.ok("check", file, "--require-merge-check", "--timeout", "3m")
	w.ok("test", file)
	dsn := strings.TrimPrefix(w.vars[len(w.vars)-1], "KAPPACTL_DSN=")
	w.as(append(w.vars, "PGPASSWORD=hunter2")...).ok("test", file, "--dsn", strings.Replace(dsn, ":hunter2@", "@", 1))
	w.ok("plan", file)
}

// looks runs every command that only looks, of a job with two versions and a dead letter; what needs no temporary tables as the
// reader too.
func (w *world) looks(topic, file string, reader *world) {
	w.t.Helper()
	w.ok("plan", file)
	for _, who := range []*world{w, reader} {
		if out := who.ok("doctor"); strings.Contains(out, "temporary tables") != (who == reader) || strings.Contains(out, "GRANT") {
			w.t.Errorf("a healthy installation is not green for %s:\n%s", who.vars[len(who.vars)-1], out)
		}
		who.ok("status")
		who.ok("status", "clicks", "v1")
		who.ok("history", "clicks")
		who.ok("query", "clicks", "page=7", "--limit", "3")
		who.ok("deadletter", "list", "clicks")
		who.ok("deadletter", "show", "clicks", topic+"/0@0")
		who.code(5, "deadletter", "retry", "clicks")
		who.ok("verify", "clicks", "v1")
		kafkatest.Until(w.t, "status completes a job: a machine that is busy may need more than the time for it", func() bool {
			return strings.Contains(who.ok("__complete", "status", ""), "clicks")
		})
	}
	w.ok("diff", "clicks")
	w.ok("diff", "clicks", "v1", "v2")
	w.reachesNoFurther(topic)
	w.ok("verify", "clicks", "v2")
}

// rightsAreNamed runs commands without the rights for them: each names its role and what to grant.
func (w *world) rightsAreNamed(topic string, reader *world) {
	w.t.Helper()
	file := w.file("v4.yaml", fmt.Sprintf(clicksJob, topic, 60))
	role := pg.Ident(w.name("reader"))
	for _, command := range [][]string{{"deploy", file}, {"plan", file}, {"pause", "clicks", "v1"}} {
		o := reader.run(command...)
		if !strings.Contains(o.stderr, "permission denied") && command[0] == "pause" {
			continue // the job is gone
		}
		says(w.t, o, 11, "permission denied")
		if !strings.Contains(o.stderr, "role "+role) || !strings.Contains(o.stderr, "for "+role) && !strings.Contains(o.stderr, "TO "+role) {
			w.t.Errorf("%v names neither role nor statement:\n%s", command, o.stderr)
		}
	}
	w.exec("REVOKE SELECT ON ALL TABLES IN SCHEMA kappactl FROM " + role)
	if o := reader.run("status"); o.code != 11 || !strings.Contains(o.stderr, `GRANT SELECT ON ALL TABLES IN SCHEMA "kappactl" TO `+role) {
		w.t.Errorf("exit %d: %s", o.code, o.stderr)
	}
}

// reachesNoFurther tries to read what the agent may read, and the role of the commands may not, by the SQL of a job file.
func (w *world) reachesNoFurther(topic string) {
	w.t.Helper()
	text := fmt.Sprintf(clicksJob, topic, 1)
	leak := w.file("leak.yaml", strings.Replace(text, "\nserve:", "\nserve:\n  columns: {leak: (SELECT count(*) FROM kappactl.delivery)}", 1))
	const want = "leak.yaml:12:50: serve.columns.leak: PostgreSQL SQL: it reads kappactl.delivery"
	if o := w.run("check", leak, "--timeout", "3m"); o.code != 2 || !strings.Contains(o.stderr, want) { // it prints the columns, too
		w.t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	for _, command := range [][]string{{"plan", leak}, {"deploy", leak}, {"deploy", leak, "--dry-run"}} {
		says(w.t, w.run(command...), 2, want)
	}
}

// forgesNothing tries, as the role of the commands, to change the history and to write as somebody else; what was asked for is
// in the history under that role, also where an agent did it.
func (w *world) forgesNothing() {
	w.t.Helper()
	role := w.name("cli")
	conn, err := pgx.Connect(w.t.Context(), strings.TrimPrefix(w.vars[len(w.vars)-1], "KAPPACTL_DSN="))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(w.t.Context())) }()
	for _, sql := range []string{
		`UPDATE kappactl.event SET by = 'somebody'`, `DELETE FROM kappactl.event`, `TRUNCATE kappactl.event`,
		`INSERT INTO kappactl.event (job, kind, session_role) VALUES ('clicks', 'promote', 'ceo')`,
		`INSERT INTO kappactl.event (job, kind, at) VALUES ('clicks', 'promote', now())`,
		`INSERT INTO kappactl.request (job, number, verb, session_role) VALUES ('clicks', 1, 'promote', 'ceo')`,
		`UPDATE kappactl.request SET session_role = 'ceo'`, `UPDATE kappactl.request SET by = 'somebody'`,
		`INSERT INTO kappactl.deployment (job, number, promote, state, session_role) VALUES ('clicks', 1, 'auto', 'waiting', 'ceo')`,
		`UPDATE kappactl.deployment SET session_role = 'ceo'`, `UPDATE kappactl.deployment SET created_by = 'somebody'`,
	} {
		if _, err := conn.Exec(w.t.Context(), sql); pg.Code(err) != pgerrcode.InsufficientPrivilege {
			w.t.Errorf("%s: %v", sql, err)
		}
	}
	var events []struct {
		Kind, By string
		Role     string `json:"db_role"`
	}
	if err := json.Unmarshal([]byte(w.ok("history", "clicks", "-o", "json")), &events); err != nil {
		w.t.Fatal(err)
	}
	asked := map[string]bool{}
	for _, e := range events {
		if e.By != "" && e.By != "kappactl" {
			asked[e.Kind] = true
			if e.Role != role {
				w.t.Errorf("%s by %s is noted for role %s, not %s", e.Kind, e.By, e.Role, role)
			}
		}
	}
	for _, kind := range []string{"deploy", "promoted", "rolled_back", "pause", "pin"} {
		if !asked[kind] {
			w.t.Errorf("no %s in the history", kind)
		}
	}
	if out := w.ok("history", "clicks"); !strings.Contains(out, "("+role+")") {
		w.t.Error(out)
	}
}

// gapAccepted cuts the log off before an agent has read it; the agent that finds that is returned. Commands and reader watch, and
// the commands accept it.
func (w *world) gapAccepted(topic string, host, cli, reader *world) *agent {
	w.t.Helper()
	from := w.sum("SELECT next FROM kappactl.position WHERE job = 'clicks' AND number = 2 AND partition = 0")
	produceClicks(w.t, w.brokers, topic, 22_000, 400)
	to, _ := kafkatest.Ends(w.t, w.brokers, topic, 0)
	kafkatest.DeleteRecords(w.t, w.brokers, topic, 0, to)
	served := host.serve()
	gap := fmt.Sprintf("[%d,%d)", from, to)
	w.until("status names the gap", func() bool { return strings.Contains(reader.ok("status", "clicks", "-o", "json"), gap) })
	for _, who := range []*world{cli, reader} {
		if o := who.run("watch", "clicks", "--timeout", "30s"); !strings.Contains(o.stdout, "clicks v2 live") || strings.Contains(o.stderr, "permission denied") {
			w.t.Errorf("watch: code %d\n%s\n%s", o.code, o.stdout, o.stderr)
		}
	}
	accept := []string{"resume", "clicks", "v2", "--accept-gap", fmt.Sprintf("%s/0:%d-%d", topic, from, to)}
	says(w.t, reader.run(accept...), 11, "permission denied")
	cli.ok(accept...)
	reader.caughtUp("clicks")
	return served
}

// takenOver adopts a table of another role, once the right that is named is given, and gives it back.
func (w *world) takenOver(cli *world) {
	w.t.Helper()
	owner, agent := w.name("owner"), w.name("agent")
	w.exec("CREATE ROLE " + pg.Ident(owner))
	w.t.Cleanup(func() {
		for _, sql := range []string{"DROP OWNED BY ", "DROP ROLE "} {
			if _, err := w.pool.Exec(context.WithoutCancel(w.t.Context()), sql+pg.Ident(owner)); err != nil {
				w.t.Error(err)
			}
		}
	})
	w.exec("CREATE TABLE public.taken (n bigint); ALTER TABLE public.taken OWNER TO " + pg.Ident(owner) + "; GRANT CREATE, USAGE ON SCHEMA public TO " + pg.Ident(owner))
	says(w.t, cli.run("adopt", "taken", "--view", "public.taken"), 11, "GRANT "+pg.Ident(owner)+" TO "+pg.Ident(agent))
	w.exec("GRANT " + pg.Ident(owner) + " TO " + pg.Ident(agent) + "; GRANT SELECT ON public.taken TO " + pg.Ident(w.name("cli")))
	cli.ok("adopt", "taken", "--view", "public.taken")
	cli.ok("drop", "taken", "--yes")
}

// TestAMissingACLIsNamed deploys with one operation after the other missing, then runs the command that the refusal prints.
func TestAMissingACLIsNamed(t *testing.T) {
	t.Parallel()
	b := kafkatest.StartSecured(t, kafkatest.WithACLs()...)
	w := newWorld(t, b.SASL)
	topic := clicksTopic(t, b.Brokers, 1000)
	w.vars = w.login(b, kafkatest.User, w.secret("password", kafkatest.Password))
	w.serve()
	job := w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0))
	for _, missing := range []string{"Describe, Read, DescribeConfigs", "Read, DescribeConfigs", "DescribeConfigs"} {
		o := w.code(11, "deploy", job)
		if want := fmt.Sprintf(`Kafka user "app" may not %s topic %s`, missing, topic); !strings.Contains(o.stderr, want) {
			t.Errorf("got %s, want %q", o.stderr, want)
		}
		_, command, _ := strings.Cut(o.stderr, "next: ")
		first, _, _ := strings.Cut(missing, ",")
		for _, op := range strings.Split(missing, ", ") { // one right at a time
			if op != first {
				command = strings.Replace(command, " --operation "+op, "", 1)
			}
		}
		b.Allow(t, command)
	}
	w.ok("deploy", job)
	w.equal("clicks")
}
