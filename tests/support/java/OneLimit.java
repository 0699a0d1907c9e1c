import java.util.Map;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;

/** A quota plugin of brokers that ignores all client quotas: one limit for all clients of a broker together. */
public final class OneLimit implements ClientQuotaCallback {
  @Override
  public void configure(Map<String, ?> settings) {}

  @Override
  public Map<String, String> quotaMetricTags(ClientQuotaType type, KafkaPrincipal principal, String clientId) {
    return Map.of("all", "clients");
  }

  @Override
  public Double quotaLimit(ClientQuotaType type, Map<String, String> tags) {
    return 1e15;
  }

  @Override
  public void updateQuota(ClientQuotaType type, ClientQuotaEntity entity, double value) {}

  @Override
  public void removeQuota(ClientQuotaType type, ClientQuotaEntity entity) {}

  @Override
  public boolean quotaResetRequired(ClientQuotaType type) {
    return false;
  }

  @Override
  public boolean updateClusterMetadata(Cluster cluster) {
    return false;
  }

  @Override
  public void close() {}
}
