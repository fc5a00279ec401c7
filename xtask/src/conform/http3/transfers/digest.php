<?php
// Prints length and SHA-256 of the request body.
$body = fopen('php://input', 'r');
$digest = hash_init('sha256');
$length = 0;
while (!feof($body)) {
    $piece = fread($body, 65536);
    $length += strlen($piece);
    hash_update($digest, $piece);
}
echo $length, ' ', hash_final($digest);
