<?php
// Front controller, as in Laravel's own skeleton: it handles every path that is not a file.
require 'Illuminate/autoload.php';
$app = require __DIR__ . '/../bootstrap.php';
$kernel = $app->make(Illuminate\Contracts\Http\Kernel::class);
$request = Illuminate\Http\Request::capture();
$response = $kernel->handle($request)->send();
$kernel->terminate($request, $response);
