import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * The hourly rollup of the page views as a user of Kafka Streams writes it: map, groupByKey, aggregate. It runs until its
 * input ends. Output: key "url TAB hour in seconds", value count and sum as two longs.
 *
 * Arguments: BROKERS IN OUT THREADS STATE_FOLDER
 */
public final class Rollup {
  @JsonIgnoreProperties(ignoreUnknown = true)
  public static final class View {
    public String url;
    public String ts;
    public long duration_ms;
  }

  public static void main(String[] args) throws Exception {
    ObjectReader json = new ObjectMapper().readerFor(View.class);
    Serde<Long> number = Serdes.Long();
    Serde<byte[]> bytes = Serdes.ByteArray();
    StreamsBuilder builder = new StreamsBuilder();
    builder.stream(args[1], Consumed.with(bytes, bytes))
        .map((key, value) -> {
          View v = parse(json, value);
          long hour = Instant.parse(v.ts).truncatedTo(ChronoUnit.HOURS).getEpochSecond();
          return KeyValue.pair(v.url + "\t" + hour, v.duration_ms);
        })
        .groupByKey(Grouped.with("by-url-and-hour", Serdes.String(), number))
        .aggregate(() -> new byte[16], (key, ms, sums) -> {
          ByteBuffer old = ByteBuffer.wrap(sums);
          return ByteBuffer.allocate(16).putLong(old.getLong() + 1).putLong(old.getLong() + ms).array();
        }, Materialized.<String, byte[], KeyValueStore<Bytes, byte[]>>as("rollup").withKeySerde(Serdes.String()).withValueSerde(bytes))
        .toStream()
        .to(args[2], Produced.with(Serdes.String(), bytes));

    Properties p = new Properties();
    p.put(StreamsConfig.APPLICATION_ID_CONFIG, args[2] + "-app");
    p.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
    p.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, args[3]);
    p.put(StreamsConfig.STATE_DIR_CONFIG, args[4]);
    p.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    p.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 1000);
    p.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 64L << 20);
    p.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    p.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
    KafkaStreams streams = new KafkaStreams(builder.build(), p);
    streams.start();
    while (System.in.read() >= 0) {
      // wait for the end
    }
    streams.close();
  }

  private static View parse(ObjectReader json, byte[] value) {
    try {
      return json.readValue(value);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private Rollup() {}
}
