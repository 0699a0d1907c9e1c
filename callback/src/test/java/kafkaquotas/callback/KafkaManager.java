package kafkaquotas.callback;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Optional;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import scala.Option;

/**
 * Kafka's own manager of produce quotas, with its default callback or with ours: a Scala class up to 4.1, a Java class from 4.2 on.
 */
final class KafkaManager implements AutoCloseable {
    private static final String KAFKAS_DEFAULT_NAME = "<default>";

    private final Metrics metrics = new Metrics();
    private final boolean scala;
    private final Object manager;
    private final Method update;

    /** {@code callback} null: Kafka's own. */
    KafkaManager(ClientQuotaCallback callback) throws ReflectiveOperationException {
        Class<?> type;
        boolean isScala = false;
        try {
            type = Class.forName("org.apache.kafka.server.quota.ClientQuotaManager");
        } catch (ClassNotFoundException error) {
            type = Class.forName("kafka.server.ClientQuotaManager");
            isScala = true;
        }
        scala = isScala;
        Object produce;
        Object plugin;
        if (scala) {
            produce = Class.forName("kafka.server.QuotaType$Produce$").getField("MODULE$").get(null);
            plugin = Option.apply(callback);
        } else {
            produce = Class.forName("org.apache.kafka.server.quota.QuotaType").getField("PRODUCE").get(null);
            plugin = callback == null ? Optional.empty() : Optional.of(wrapped(callback));
        }
        Constructor<?> longest = null;
        for (Constructor<?> one : type.getConstructors()) {
            longest = longest == null || one.getParameterCount() > longest.getParameterCount() ? one : longest;
        }
        manager = longest.newInstance(new ClientQuotaManagerConfig(), metrics, produce, Time.SYSTEM, "test", plugin);
        Method chosen = null;
        for (Method method : type.getMethods()) {
            chosen = method.getName().equals("updateQuota") ? method : chosen;
        }
        update = chosen;
    }

    private Object wrapped(ClientQuotaCallback callback) throws ReflectiveOperationException {
        for (Method method : Class.forName("org.apache.kafka.common.internals.Plugin").getMethods()) {
            Class<?>[] types = method.getParameterTypes();
            if (method.getName().equals("wrapInstance") && types.length == 3 && types[2] == String.class) {
                return method.invoke(null, callback, metrics, "client.quota.callback.class");
            }
        }
        throw new NoSuchMethodException("Plugin.wrapInstance");
    }

    /** {@code limit} null removes the quota. */
    void update(String user, String clientId, Double limit) throws ReflectiveOperationException {
        if (scala) {
            Option<String> client = Option.apply(clientId).map(name -> is(name) ? KAFKAS_DEFAULT_NAME : name);
            Option<String> sanitized = Option.apply(clientId).map(KafkaManager::stored);
            update.invoke(manager, Option.apply(user).map(KafkaManager::stored), client, sanitized,
                Option.apply(limit == null ? null : Quota.upperBound(limit)));
        } else {
            update.invoke(manager, part("UserEntity", "DEFAULT_USER_ENTITY", user, true),
                part("ClientIdEntity", "DEFAULT_USER_CLIENT_ID", clientId, false),
                Optional.ofNullable(limit == null ? null : Quota.upperBound(limit)));
        }
    }

    private Optional<Object> part(String type, String unnamed, String name, boolean encode) throws ReflectiveOperationException {
        if (name == null) {
            return Optional.empty();
        }
        if (is(name)) {
            return Optional.of(manager.getClass().getField(unnamed).get(null));
        }
        Class<?> entity = Class.forName(manager.getClass().getName() + "$" + type);
        return Optional.of(entity.getConstructor(String.class).newInstance(encode ? stored(name) : name));
    }

    @SuppressWarnings("ReferenceEquality")
    private static boolean is(String name) {
        return name == Entities.DEFAULT;
    }

    private static String stored(String name) {
        return is(name) ? KAFKAS_DEFAULT_NAME : sanitized(name);
    }

    /** By Kafka's own class, which moved in 4.4. */
    static String sanitized(String name) {
        try {
            Class<?> sanitizer;
            try {
                sanitizer = Class.forName("org.apache.kafka.common.utils.internals.Sanitizer");
            } catch (ClassNotFoundException error) {
                sanitizer = Class.forName("org.apache.kafka.common.utils.Sanitizer");
            }
            return (String) sanitizer.getMethod("sanitize", String.class).invoke(null, name);
        } catch (ReflectiveOperationException error) {
            throw new AssertionError(error);
        }
    }

    /** The callback that the manager asks. */
    ClientQuotaCallback callback() throws ReflectiveOperationException {
        Field field = manager.getClass().getDeclaredField("quotaCallback");
        field.setAccessible(true);
        return (ClientQuotaCallback) field.get(manager);
    }

    @Override
    public void close() throws ReflectiveOperationException {
        manager.getClass().getMethod("shutdown").invoke(manager);
        metrics.close();
    }
}
