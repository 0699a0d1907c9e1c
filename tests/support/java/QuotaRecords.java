import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.common.metadata.ClientQuotaRecord;
import org.apache.kafka.common.metadata.ClientQuotaRecord.EntityData;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.metadata.storage.Formatter;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * An agent that runs before a broker of the sandbox: its metadata begin with quotas that no request could set.
 *
 * <p>The argument is a file of lines {@code type TAB name [TAB type TAB name] TAB key TAB value}; the name {@code <nil>} is the
 * default. Brokers keep such records from migrations.
 */
public final class QuotaRecords {
  private QuotaRecords() {}

  public static void premain(String file, Instrumentation unused) throws Exception {
    Path data = Path.of(System.getProperty("java.io.tmpdir")).resolveSibling("data");
    List<ApiMessageAndVersion> records = new ArrayList<>(BootstrapMetadata.fromDirectory(data).records());
    for (String line : Files.readAllLines(Path.of(file))) {
      String[] fields = line.split("\t", -1);
      int parts = fields.length - 2;
      ClientQuotaRecord quota = new ClientQuotaRecord().setKey(fields[parts]).setValue(Double.parseDouble(fields[parts + 1]));
      for (int at = 0; at < parts; at += 2) {
        String name = fields[at + 1].equals("<nil>") ? null : fields[at + 1];
        quota.entity().add(new EntityData().setEntityType(fields[at]).setEntityName(name));
      }
      records.add(new ApiMessageAndVersion(quota, (short) 0));
    }
    BootstrapMetadata first = BootstrapMetadata.fromRecords(records, "kafka-quotas tests");
    Formatter.writeBoostrapSnapshot(data.toString(), first, Optional.empty(), first.featureLevel("kraft.version"), "CONTROLLER");
  }
}
