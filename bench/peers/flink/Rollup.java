import java.time.Duration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableConfig;

/**
 * The hourly rollup of the page views in Flink SQL, in streaming mode over the topic as it is now, into PostgreSQL by upsert. It
 * runs twice in this process, into two tables: cold as the first job, then warm. It prints the seconds of each run and ends with its
 * input.
 *
 * The password comes in PGPASSWORD. Arguments: BROKERS TOPIC PARALLELISM JDBC_URL USER COLD_TABLE WARM_TABLE
 */
public final class Rollup {
  public static void main(String[] args) throws Exception {
    TableEnvironment t = TableEnvironment.create(EnvironmentSettings.newInstance().inStreamingMode().build());
    TableConfig c = t.getConfig();
    c.set("parallelism.default", args[2]);
    c.set("table.local-time-zone", "UTC");
    // Off by default, and twice as fast.
    c.set("table.exec.mini-batch.enabled", "true");
    c.set("table.exec.mini-batch.allow-latency", "1s");
    c.set("table.exec.mini-batch.size", "50000");
    c.set("table.optimizer.agg-phase-strategy", "TWO_PHASE");
    c.set("execution.checkpointing.interval", "10s");
    c.set("taskmanager.numberOfTaskSlots", args[2]);
    c.set("taskmanager.memory.managed.size", "256m");
    t.executeSql("CREATE TABLE pageviews (url STRING, ts TIMESTAMP_LTZ(3), duration_ms BIGINT) WITH ('connector' = 'kafka', 'topic' = '"
        + args[1] + "', 'properties.bootstrap.servers' = '" + args[0] + "', 'scan.startup.mode' = 'earliest-offset', "
        + "'scan.bounded.mode' = 'latest-offset', 'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601')");
    for (String table : new String[] {args[5], args[6]}) {
      t.executeSql("CREATE TABLE " + table + " (url STRING, `hour` TIMESTAMP(3), `views` BIGINT, total BIGINT, PRIMARY KEY (url, `hour`) NOT ENFORCED) "
          + "WITH ('connector' = 'jdbc', 'url' = '" + args[3] + "', 'username' = '" + args[4] + "', "
          + "'password' = '" + System.getenv("PGPASSWORD") + "', 'table-name' = '" + table + "', "
          + "'sink.buffer-flush.max-rows' = '5000', 'sink.buffer-flush.interval' = '1s')");
      long began = System.nanoTime();
      t.executeSql("INSERT INTO " + table + " SELECT url, CAST(FLOOR(ts TO HOUR) AS TIMESTAMP(3)), COUNT(*), SUM(duration_ms) FROM pageviews "
          + "GROUP BY url, CAST(FLOOR(ts TO HOUR) AS TIMESTAMP(3))").await();
      System.out.println(Duration.ofNanos(System.nanoTime() - began).toMillis() / 1000.0);
    }
    while (System.in.read() >= 0) {
      // its memory and CPU time are still being read
    }
  }

  private Rollup() {}
}
