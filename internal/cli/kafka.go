package cli

import (
	"context"

	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
)

// kafkaConfig says how to reach the brokers: address, TLS and login. It opens no connection.
func kafkaConfig(ctx context.Context, s config.Settings) (kafka.Config, error) {
	if err := s.NeedBrokers(); err != nil {
		return kafka.Config{}, err
	}
	tls, err := s.Kafka.TLS.Client()
	if err != nil {
		return kafka.Config{}, err
	}
	c := kafka.Config{Brokers: s.Brokers, TLS: tls}
	sasl := s.Kafka.SASL
	if sasl.Mechanism == "" {
		return c, nil
	}
	// Read once now, so that a source that does not work ends the command at once.
	if _, err := sasl.Password.Read(ctx); err != nil {
		return kafka.Config{}, &job.Refusal{Code: job.ExitUsage, Cause: "kafka.sasl: " + err.Error(), Err: err}
	}
	c.Login, err = kafka.NewLogin(sasl.Mechanism, sasl.User, func(ctx context.Context) (string, error) {
		password, err := sasl.Password.Read(ctx) // a new password needs no restart
		return string(password), err
	})
	return c, err
}
