import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/**
 * Reads addresses, one a line in Base64, and writes how Java understands each: the scheme, the authority and the path
 * that java.net.URI has after it was normalized, and the protocol, the authority and the path of java.net.URL, which
 * the agent uses. Between them is a tab. A line with an error says its class.
 */
public class UrlParts {
  public static void main(String[] arguments) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String address = new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8);
      System.out.println(encoded(parts(address)));
    }
  }

  private static String parts(String address) {
    try {
      URI uri = new URI(address).normalize();
      URL url = new URL(address);
      return String.join(
          "\t",
          uri.getScheme(),
          String.valueOf(uri.getAuthority()),
          uri.getPath(),
          url.getProtocol(),
          url.getAuthority(),
          url.getPath());
    } catch (Exception error) {
      return error.getClass().getName();
    }
  }

  private static String encoded(String text) {
    return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
  }
}
