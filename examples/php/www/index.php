<?php
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
$boats = ['heron' => 'Heron: two seats, blue', 'otter' => 'Otter: four seats, green'];
if ($path === '/') {
    echo "<h1>Boats for hire</h1>\n<ul>\n";
    foreach ($boats as $name => $text) {
        echo '<li><a href="/boats/', $name, '">', $text, "</a></li>\n";
    }
    echo "</ul>\n";
} elseif (preg_match('~^/boats/(\w+)$~', $path, $found) && isset($boats[$found[1]])) {
    echo '<h1>', $boats[$found[1]], "</h1>\n";
} else {
    http_response_code(404);
    echo "<h1>No such boat</h1>\n";
}
