<?php
// Front controller, as in Symfony's own skeleton: it handles every path that is not a file.
require 'Symfony/Bundle/FrameworkBundle/autoload.php';
require 'Symfony/Component/Security/Csrf/autoload.php';
require __DIR__ . '/../src/Kernel.php';

$kernel = new App\Kernel('prod', false);
$request = Symfony\Component\HttpFoundation\Request::createFromGlobals();
$response = $kernel->handle($request)->send();
$kernel->terminate($request, $response);
