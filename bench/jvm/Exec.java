import com.sun.management.UnixOperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;

/**
 * Executes a command again and again while it holds files open, as a server in
 * Java does: the measurement of gcj's exec race, on a Java of today.
 *
 * <p>usage: java Exec FILES COMMAND
 *
 * <p>It first writes the runtime's version and the limit on open files that the
 * runtime sees. Then, for every line with a number of executions that it reads
 * from the standard input, it writes a line with what each of them took from
 * before its start to after its end, in nanoseconds. It ends with its input.
 */
public final class Exec {
    private Exec() {}

    public static void main(String[] args) throws Exception {
        List<InputStream> files = new ArrayList<>();
        for (int i = Integer.parseInt(args[0]); i > 0; i--) {
            files.add(new FileInputStream("/dev/null"));
        }
        ProcessBuilder command = new ProcessBuilder(args[1]);
        UnixOperatingSystemMXBean system =
                (UnixOperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        System.out.println(System.getProperty("java.vendor") + " " + Runtime.version());
        System.out.println(system.getMaxFileDescriptorCount());

        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            int n = Integer.parseInt(line);
            StringBuilder out = new StringBuilder();
            for (int i = 0; i < n; i++) {
                long begin = System.nanoTime();
                Process process = command.start();
                int status = process.waitFor();
                long took = System.nanoTime() - begin;
                // Three pipes belong to every process: they must not wait for the collector.
                process.getInputStream().close();
                process.getErrorStream().close();
                process.getOutputStream().close();
                if (status != 0) {
                    throw new IllegalStateException(args[1] + " ended with status " + status);
                }
                out.append(took).append(' ');
            }
            System.out.println(out);
        }
        // Nothing has closed them before now, nor could the collector.
        for (InputStream file : files) {
            file.close();
        }
    }
}
