package kafkaquotas.callback;

import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import javax.management.JMException;
import javax.management.ObjectName;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The names of one callback in JMX. A combined node makes a callback for each of its roles. */
final class Beans {
    private static final Logger LOG = LoggerFactory.getLogger(Beans.class);
    private static final AtomicInteger NEXT = new AtomicInteger(1);

    private final int instance = NEXT.getAndIncrement();
    private final Map<String, ObjectName> registered = new ConcurrentHashMap<>();

    void addStatus(CallbackStatusMXBean status, int node) {
        add("", status, "kafka-quotas:type=callback,node=" + node + ",instance=" + instance);
    }

    void addGroup(String group, GroupStatusMXBean status, int node) {
        String name = "kafka-quotas:type=callback-group,node=" + node + ",instance=" + instance + ",group=" + ObjectName.quote(group);
        add("group " + group, status, name);
    }

    void removeGroup(String group) {
        remove("group " + group);
    }

    void removeAll() {
        for (String key : registered.keySet()) {
            remove(key);
        }
    }

    private void add(String key, Object bean, String name) {
        try {
            ObjectName made = new ObjectName(name);
            ManagementFactory.getPlatformMBeanServer().registerMBean(bean, made);
            registered.put(key, made);
        } catch (JMException | RuntimeException error) {
            LOG.info("The quota callback has no {} in JMX: {}", name, error.toString());
        }
    }

    private void remove(String key) {
        ObjectName name = registered.remove(key);
        if (name == null) {
            return;
        }
        try {
            ManagementFactory.getPlatformMBeanServer().unregisterMBean(name);
        } catch (JMException error) {
            LOG.debug("{} was not in JMX any more", name, error);
        }
    }
}
